package rest

import (
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// block is an insertion of so many bytes with memories.
func block(size int, replayed bool, ids ...string) receipt.Insertion {
	in := receipt.Insertion{Placement: "user", Replayed: replayed, Text: strings.Repeat("x", size)}
	for _, id := range ids {
		in.Spans = append(in.Spans, fence.Span{ID: id})
	}
	return in
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

// Exchanges cost what the first price that fits says.
func TestMoney(t *testing.T) {
	r := newRig(t, options{who: local(), prices: []api.Price{
		{Model: "big-*", Currency: "USD", Input: 3, CacheRead: .3, CacheWrite: 3.75, Output: 15},
		{Model: "*-free", Currency: "EUR"},
		{Model: "plain", Currency: "EUR", Input: 2, Output: 4},
		{Model: "BIG-1", Currency: "XXX", Input: 1000},
	}})
	for name, tt := range map[string]struct {
		model    string
		usage    receipt.Usage
		inserted []receipt.Insertion
		want     *api.Money
	}{
		"cached": { // input is the total: 1,000,000 were neither read nor written
			"Big-1", receipt.Usage{Input: 3_000_000, CacheRead: 1_500_000, CacheWrite: 500_000, Output: 100_000, Added: 3000},
			[]receipt.Insertion{block(8000, true, "a"), block(4000, false, "b")},
			&api.Money{Currency: "USD", Paid: 3 + .45 + 1.875 + 1.5, Saved: 1.5 * 2.7, Added: (1000*3 + 2000*.3) / 1e6},
		},
		"without the cache's price": {
			"plain", receipt.Usage{Input: 1_000_000, CacheRead: 400_000, CacheWrite: 100_000, Output: 500_000, Added: 1000}, []receipt.Insertion{block(4000, false)},
			&api.Money{Currency: "EUR", Paid: 4, Added: .002},
		},
		"nothing from the cache": {
			"big-2", receipt.Usage{Input: 1_000_000, Added: 2000}, []receipt.Insertion{block(8000, true)},
			&api.Money{Currency: "USD", Paid: 3, Added: .006},
		},
		"free":       {"x/y-free", receipt.Usage{Input: 1_000_000}, nil, &api.Money{Currency: "EUR"}},
		"no price":   {"other", receipt.Usage{Input: 1_000_000}, nil, nil},
		"no tokens":  {"plain", receipt.Usage{}, nil, &api.Money{Currency: "EUR"}},
		"odd counts": {"plain", receipt.Usage{Input: 10, CacheRead: 20}, nil, &api.Money{Currency: "EUR", Paid: 20 * 2 / 1e6}},
	} {
		id := r.record(localScope("ada"), func(x *receipt.Receipt) { x.Model, x.Usage, x.Inserted = tt.model, tt.usage, tt.inserted })
		r.eventually(t, func() bool { return r.send(t, "GET", "/v1/exchanges/"+id+"?user=ada", nil).status == 200 })
		got := get[api.Exchange](t, r.send(t, "GET", "/v1/exchanges/"+id+"?user=ada", nil)).Money
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestBenefit adds up exchanges whose numbers are known.
func TestBenefit(t *testing.T) {
	r := newRig(t, options{who: local(), prices: []api.Price{
		{Model: "m-1", Currency: "USD", Input: 1, CacheRead: .5, Output: 2}, {Model: "m-2", Currency: "EUR", Input: 10},
	}})
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -10)
	add := func(user string, hours float64, status string, more func(*receipt.Receipt)) {
		r.record(localScope(user), func(x *receipt.Receipt) {
			x.At, x.Status, x.Client = storage.TimeOf(day.Add(time.Duration(hours*float64(time.Hour)))), status, "codex"
			x.Times = receipt.Times{Plan: 10, Recall: 0, FirstByte: int64(hours*100) + 1, Total: int64(hours*1000) + 1}
			if more != nil {
				more(x)
			}
		})
	}
	add("ada", 0, "injected", func(x *receipt.Receipt) {
		x.Inserted = []receipt.Insertion{block(400, false, "a", "b"), block(400, true, "c")}
		x.Usage = receipt.Usage{Input: 1_000_000, CacheRead: 400_000, Output: 500_000, Added: 200}
	})
	add("ben", 1.5, "replayed", func(x *receipt.Receipt) { x.Usage, x.Model = receipt.Usage{Input: 1_000_000}, "m-2" })
	add("ada", 1.75, "empty", nil)
	add("ben", 3, "timeout", func(x *receipt.Receipt) { x.Times.Recall = 70 })
	add("ada", 3, "unavailable", nil)
	add("ada", 4, "repaired", nil)
	add("ada", 5, "observed", func(x *receipt.Receipt) { x.Candidates = []receipt.Candidate{{ID: "a", Reason: "observed"}} })
	add("ada", 6, "observed", func(x *receipt.Receipt) { x.Candidates = []receipt.Candidate{{ID: "a", Reason: "gate"}} })
	add("ada", 7, "off", func(x *receipt.Receipt) { x.Client, x.Times = "claude", receipt.Times{} })
	add("ada", 24*3, "empty", nil)    // of another day
	add("ada", 24*9, "injected", nil) // of the last week
	r.eventually(t, func() bool { ids, _ := r.recent(t, ""); return len(ids) == 11 })
	of := func(query string, from, until time.Time) api.Benefit {
		t.Helper()
		return get[api.Benefit](t, r.send(t, "GET", "/v1/benefit?"+query+"&since="+url.QueryEscape(from.Format(time.RFC3339))+
			"&until="+url.QueryEscape(until.Format(time.RFC3339)), nil))
	}
	b := of("", day, day.AddDate(0, 0, 1))
	want := api.Totals{
		Exchanges: 9, Asked: 8, HitRate: 3. / 8, EmptyRate: 1. / 8, FailRate: 2. / 8, Memories: 2, AddedTokens: 200,
		Statuses:    map[string]int{"injected": 1, "replayed": 1, "empty": 1, "timeout": 1, "unavailable": 1, "repaired": 1, "observed": 2, "off": 1},
		InputTokens: 2_000_000, OutputTokens: 500_000, CacheReadTokens: 400_000, CacheReadShare: .2,
		Money: []api.Money{{Currency: "EUR", Paid: 10}, {Currency: "USD", Paid: 1.8, Saved: .2, Added: (100 + 50) / 1e6}},
		Latency: api.Latency{
			Plan: api.Percentiles{P50: 10, P95: 10}, Recall: api.Percentiles{P50: 70, P95: 70},
			FirstByte: api.Percentiles{P50: 301, P95: 601}, Total: api.Percentiles{P50: 3001, P95: 6001},
		},
	}
	if diff := cmp.Diff(want, b.Totals, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("totals: -want +got\n%s", diff)
	}
	if b.On.Exchanges != 6 || !near(b.On.HitRate, 2./6) || b.Observe.Exchanges != 2 || !near(b.Observe.HitRate, .5) || b.Off.Exchanges != 1 || b.Off.Asked != 0 {
		t.Errorf("on %+v\nobserve %+v\noff %+v", b.On, b.Observe, b.Off)
	}
	counts := func(b api.Benefit) (n []int) {
		for _, p := range b.Series {
			n = append(n, p.Exchanges)
		}
		return n
	}
	if got := counts(b); b.Step != "hour" || b.Users != 2 || b.Partial || len(got) != 24 || !slices.Equal(got[:8], []int{1, 2, 0, 2, 1, 1, 1, 1}) {
		t.Errorf("by %s, of %d users: %v", b.Step, b.Users, got)
	}
	if got := b.Series[3].Time; got != day.Add(3*time.Hour).Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("the fourth hour begins at %s", got)
	}
	if got := of("", day.Add(90*time.Minute), day.Add(4*time.Hour)); !slices.Equal(counts(got), []int{2, 0, 2}) {
		t.Errorf("hours that are cut: %v", counts(got))
	}
	if got := of("", day.Add(-time.Hour), day.AddDate(0, 0, 4)); got.Step != "day" || !slices.Equal(counts(got), []int{0, 9, 0, 0, 1}) {
		t.Errorf("by %s: %v", got.Step, counts(got))
	}
	for query, want := range map[string]int{"client=claude": 1, "model=m-2": 1, "user=ben": 2, "user=zoe": 0, "client=claude&model=m-2": 0} {
		if got := of(query, day, day.AddDate(0, 0, 1)).Totals.Exchanges; got != want {
			t.Errorf("%s: %d exchanges, want %d", query, got, want)
		}
	}
	if got := get[api.Benefit](t, r.send(t, "GET", "/v1/benefit", nil)); got.Totals.Exchanges != 1 || got.Step != "day" || len(got.Series) != 8 {
		t.Errorf("the last week: %d exchanges, %d points by %s", got.Totals.Exchanges, len(got.Series), got.Step)
	}
	for query, field := range map[string]string{
		"since=x": "since", "until=x": "until", "since=2026-01-02&until=2026-01-01": "since", "since=2024-01-01&until=2026-01-01": "since",
		"model=" + strings.Repeat("m", 513): "model", "client=" + strings.Repeat("m", 513): "client",
	} {
		r.send(t, "GET", "/v1/benefit?"+query, nil).problem(t, 422, "invalid", field)
	}
}
