package api

import (
	"context"
	"time"

	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// BenefitQuestion selects the exchanges that are counted.
type BenefitQuestion struct {
	// Since and Until are times as RFC 3339, or days; Until is exclusive. ""
	// means a week before Until, and now.
	Since, Until  string
	Model, Client string // "" = any
}

// Benefit is what memory did in many exchanges, and what it cost.
type Benefit struct {
	Since string `json:"since"`
	Until string `json:"until"`
	Step  string `json:"step"` // of Series: hour or day
	Users int    `json:"users"`
	// Partial reports that there are more users or receipts than a call reads.
	Partial bool   `json:"partial,omitempty"`
	Totals  Totals `json:"totals"`
	// On has the exchanges in which memory was used, or failed to be; Observe
	// those in which it was searched and not used; Off all others.
	On      Totals `json:"on"`
	Observe Totals `json:"observe"`
	Off     Totals `json:"off"`
	// Series has a point for each step, those without exchanges too.
	Series []Point `json:"series"`
}

// Point is one step of a series.
type Point struct {
	Time string `json:"time"` // when it begins
	Totals
}

// Totals are numbers of exchanges.
type Totals struct {
	Exchanges int            `json:"exchanges"`
	Statuses  map[string]int `json:"statuses"` // exchanges by status, as in X-Remora-Status
	// Asked counts the exchanges in which memory was asked for, of which the
	// rates are shares. A hit was injected or replayed, or would have been if
	// memory had not only observed.
	Asked     int     `json:"asked"`
	HitRate   float64 `json:"hitRate"`
	EmptyRate float64 `json:"emptyRate"`
	FailRate  float64 `json:"failRate"` // timeout or unavailable
	// Memories counts those that were inserted, without those that were
	// replayed.
	Memories        int   `json:"memories"`
	AddedTokens     int64 `json:"addedTokens"` // estimated: see receipt.Usage
	InputTokens     int64 `json:"inputTokens"`
	OutputTokens    int64 `json:"outputTokens"`
	CacheReadTokens int64 `json:"cacheReadTokens"`
	// CacheReadShare is the part of the input that was read from the cache.
	CacheReadShare float64 `json:"cacheReadShare"`
	Money          []Money `json:"money"` // a sum for each currency
	Latency        Latency `json:"latency"`
}

// Latency is where the time of exchanges went. Exchanges without such a time
// don't count for it.
type Latency struct {
	Plan      Percentiles `json:"plan"`
	Recall    Percentiles `json:"recall"`
	FirstByte Percentiles `json:"firstByte"`
	Total     Percentiles `json:"total"`
}

// Percentiles are in microseconds; 0 = there is no such time.
type Percentiles struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
}

// Limits of Benefit.
const (
	maxBenefitReceipts = 50_000 // beyond, Benefit.Partial is set
	maxBenefitDays     = 400    // a longer span is refused
	benefitDays        = 7      // the span without BenefitQuestion.Since
	hourlyHours        = 48     // up to this span the series is hourly
)

// Statuses of exchanges that count here, as in X-Remora-Status.
const (
	statusInjected    = "injected"
	statusReplayed    = "replayed"
	statusEmpty       = "empty"
	statusObserved    = "observed"
	statusTimeout     = "timeout"
	statusUnavailable = "unavailable"
	statusRejected    = "rejected"
	statusRepaired    = "repaired"
)

// Benefit adds up the receipts of the users that the principal may reach by a
// target. It reads at most maxRecentUsers users and maxBenefitReceipts receipts.
func (s *questions) Benefit(ctx context.Context, p Principal, t Target, q BenefitQuestion) (Benefit, error) {
	if s.Receipts == nil {
		return Benefit{}, ErrOff
	}
	b, err := s.newBenefit(q)
	if err != nil {
		return Benefit{}, err
	}
	scopes, more, err := s.reached(ctx, p, t, maxRecentUsers)
	if err != nil {
		return Benefit{}, err
	}
	for _, scope := range scopes {
		if err := b.read(ctx, scope); err != nil {
			return Benefit{}, err
		}
		if b.left < 0 {
			break
		}
	}
	out := b.result()
	out.Users, out.Partial = len(scopes), more || b.left < 0
	return out, nil
}

// benefit adds up receipts.
type benefit struct {
	*questions
	filter           exchangeFilter
	step             time.Duration
	left             int // receipts that may still be read; < 0 = there were more
	all, on, obs, no sums
	series           []sums
}

func (s *questions) newBenefit(q BenefitQuestion) (*benefit, error) {
	f, err := ExchangeFilter{Model: q.Model, Client: q.Client, Since: q.Since, Until: q.Until}.compile()
	if err != nil {
		return nil, err
	}
	if f.until == 0 {
		f.until = storage.TimeOf(s.Now()) + 1
	}
	if f.since == 0 {
		f.since = storage.TimeOf(f.until.Std().AddDate(0, 0, -benefitDays))
	}
	span := f.until.Std().Sub(f.since.Std())
	switch {
	case span <= 0:
		return nil, invalid("since", "must be before until")
	case span > maxBenefitDays*24*time.Hour:
		return nil, invalid("since", "must be at most %d days before until", maxBenefitDays)
	}
	b := &benefit{questions: s, filter: f, left: maxBenefitReceipts, step: 24 * time.Hour}
	if span <= hourlyHours*time.Hour {
		b.step = time.Hour
	}
	b.series = make([]sums, b.slot(f.until-1)+1)
	return b, nil
}

// slot returns the number of the step that a time is in. Steps begin at full
// hours or days, UTC.
func (b *benefit) slot(at storage.Time) int {
	step := storage.Time(b.step.Milliseconds())
	return int(at/step - b.filter.since/step)
}

// read adds the receipts of a user.
func (b *benefit) read(ctx context.Context, scope storage.Scope) error {
	prefix := commonPrefix(firstID(b.filter.since), firstID(b.filter.until-1))
	for page, err := range storage.Pages(func(after string) (storage.RecordPage, string, error) {
		page, err := b.Store.RecordsWithPrefix(ctx, storage.BucketExchange, scope, prefix, after, 0)
		return page, page.Next, err
	}) {
		if err != nil {
			return err
		}
		for i := range page.Records {
			rec := &page.Records[i]
			if !receiptID(rec.Key) || !b.filter.timely(rec.Key) {
				continue
			}
			if b.left--; b.left < 0 {
				return nil
			}
			r, err := receipt.Decode(rec)
			if err == nil && b.filter.matches(&r) {
				b.add(&r)
			}
		}
	}
	return nil
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func (b *benefit) add(r *receipt.Receipt) {
	money := b.moneyOf(r)
	group := &b.no
	switch {
	case r.Status == statusObserved:
		group = &b.obs
	case AsksForMemory(r.Status):
		group = &b.on
	}
	b.all.add(r, money)
	group.add(r, money)
	if n := b.slot(r.At); n >= 0 && n < len(b.series) {
		b.series[n].add(r, money)
	}
}

func (b *benefit) result() Benefit {
	out := Benefit{
		Since: stamp(b.filter.since), Until: stamp(b.filter.until), Step: "day", Totals: b.all.totals(), On: b.on.totals(),
		Observe: b.obs.totals(), Off: b.no.totals(), Series: make([]Point, len(b.series)),
	}
	if b.step == time.Hour {
		out.Step = "hour"
	}
	step := storage.Time(b.step.Milliseconds())
	for i := range b.series {
		out.Series[i] = Point{stamp((b.filter.since/step + storage.Time(i)) * step), b.series[i].totals()}
	}
	return out
}
