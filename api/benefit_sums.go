package api

import (
	"maps"
	"slices"

	"github.com/remora-proxy/remora/recall/receipt"
)

// sums are what Totals are made of. The zero sums are empty.
type sums struct {
	statuses map[string]int
	hits     int
	memories int
	usage    receipt.Usage
	money    map[string]Money // by currency
	times    [4][]int64       // plan, recall, first byte, total
}

func (t *sums) add(r *receipt.Receipt, money *Money) {
	if t.statuses == nil {
		t.statuses, t.money = map[string]int{}, map[string]Money{}
	}
	t.statuses[r.Status]++
	if isHit(r) {
		t.hits++
	}
	t.memories += len(r.Memories())
	t.usage.Added += r.Usage.Added
	t.usage.Input += r.Usage.Input
	t.usage.Output += r.Usage.Output
	t.usage.CacheRead += r.Usage.CacheRead
	if money != nil {
		sum := t.money[money.Currency]
		t.money[money.Currency] = Money{
			money.Currency, sum.Paid + money.Paid, sum.Saved + money.Saved, sum.Added + money.Added,
		}
	}
	for i, took := range [...]int64{r.Times.Plan, r.Times.Recall, r.Times.FirstByte, r.Times.Total} {
		if took > 0 {
			t.times[i] = append(t.times[i], took)
		}
	}
}

// AsksForMemory reports whether an exchange with this status asked for memory,
// whatever came of it.
func AsksForMemory(status string) bool {
	switch status {
	case statusInjected, statusReplayed, statusEmpty, statusObserved, statusTimeout, statusUnavailable, statusRejected, statusRepaired:
		return true
	}
	return false
}

// isHit reports whether memory had something for an exchange.
func isHit(r *receipt.Receipt) bool {
	switch r.Status {
	case statusInjected, statusReplayed:
		return true
	case statusObserved:
		return slices.ContainsFunc(r.Candidates, func(c receipt.Candidate) bool { return c.Reason == statusObserved })
	}
	return false
}

// totals returns the Totals of what was added. It sorts the times.
func (t *sums) totals() Totals {
	out := Totals{
		Statuses: map[string]int{}, Memories: t.memories, AddedTokens: t.usage.Added, InputTokens: t.usage.Input,
		OutputTokens: t.usage.Output, CacheReadTokens: t.usage.CacheRead, Money: []Money{},
		CacheReadShare: share(t.usage.CacheRead, t.usage.Input),
	}
	maps.Copy(out.Statuses, t.statuses)
	for status, n := range t.statuses {
		out.Exchanges += n
		if AsksForMemory(status) {
			out.Asked += n
		}
	}
	out.HitRate = share(t.hits, out.Asked)
	out.EmptyRate = share(t.statuses[statusEmpty], out.Asked)
	out.FailRate = share(t.statuses[statusTimeout]+t.statuses[statusUnavailable], out.Asked)
	for _, currency := range slices.Sorted(maps.Keys(t.money)) {
		out.Money = append(out.Money, t.money[currency])
	}
	out.Latency = Latency{percentiles(t.times[0]), percentiles(t.times[1]), percentiles(t.times[2]), percentiles(t.times[3])}
	return out
}

// share returns n of all, 0 of nothing.
func share[T int | int64](n, all T) float64 {
	if all <= 0 {
		return 0
	}
	return float64(n) / float64(all)
}

// percentiles sorts values and returns percentiles by the nearest rank.
func percentiles(values []int64) Percentiles {
	if len(values) == 0 {
		return Percentiles{}
	}
	slices.Sort(values)
	rank := func(percent int) int64 { return values[(len(values)*percent+99)/100-1] }
	return Percentiles{rank(50), rank(95)}
}
