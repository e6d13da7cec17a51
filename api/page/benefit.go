package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
)

// benefitView is what memory did in many exchanges.
type benefitView struct {
	base
	Asked   spell
	Choices []choice // of whose exchanges count
	Benefit api.Benefit
	Off     bool // no receipts are kept
	Priced  bool // prices are set
	Problem string
	Figures []gain
	Columns []column
	Rows    []comparison
	Compare string // what the comparison shows
	Charts  []chart
}

// spell is which exchanges are counted, as the URL says it.
type spell struct {
	Period        string // one of periods
	Only          string // one person, as the parameters that name them; "" = everybody
	Model, Client string
}

// periods are the choices of how far back exchanges count.
var periods = []struct {
	Value, Name string
	length      time.Duration
}{
	{"24h", "24 hours", 24 * time.Hour}, {"7d", "7 days", 7 * 24 * time.Hour}, {"30d", "30 days", 30 * 24 * time.Hour},
}

func spellOf(q url.Values) spell {
	s := spell{Period: q.Get("period"), Only: q.Get("only"), Model: strings.TrimSpace(q.Get("model")), Client: strings.TrimSpace(q.Get("client"))}
	if s.length() == 0 {
		s.Period = "7d"
	}
	return s
}

func (s spell) length() time.Duration {
	for _, p := range periods {
		if p.Value == s.Period {
			return p.length
		}
	}
	return 0
}

// Periods returns the choices for the form.
func (spell) Periods() any { return periods }

// target returns whose exchanges count.
func (s spell) target() api.Target {
	q, err := url.ParseQuery(s.Only)
	if err != nil {
		return api.Target{}
	}
	return api.Target{Tenant: q.Get("tenant"), App: q.Get("app"), Project: q.Get("project"), User: q.Get("user")}
}

// choice is one person whose exchanges can be counted alone.
type choice struct{ Value, Name string }

// choices are the people to choose from, with the one that is chosen.
func choices(people []api.User, s spell) (out []choice) {
	for _, u := range people {
		t := targetOf(u)
		out = append(out, choice{targetQuery(t).Encode(), person(t)})
	}
	t := s.target()
	if chosen := targetQuery(t).Encode(); chosen != "" && !slices.ContainsFunc(out, func(c choice) bool { return c.Value == chosen }) {
		out = append(out, choice{chosen, person(t)})
	}
	return out
}

// Chosen reports whether a choice is the one in the URL.
func (v benefitView) Chosen(c choice) bool { return c.Value == targetQuery(v.Asked.target()).Encode() }

// showBenefit shows what memory did, and what it cost. The person that the other
// views are about stays in the address and does not limit it.
func showBenefit(c *call) error {
	if c.whose.User != "" {
		if _, err := c.service.Owner(c.p, c.whose); err != nil {
			return err
		}
	}
	b, err := c.begin("Benefit", "benefit")
	if err != nil {
		return err
	}
	v := benefitView{base: b, Asked: spellOf(c.r.URL.Query()), Priced: len(c.service.Prices) > 0}
	v.Choices = choices(b.People, v.Asked)
	v.Benefit, err = c.service.Benefit(c.ctx, c.p, v.Asked.target(), api.BenefitQuestion{
		Since: c.now().Add(-v.Asked.length()).UTC().Format(time.RFC3339), Model: v.Asked.Model, Client: v.Asked.Client,
	})
	switch {
	case err == nil:
		v.fill()
	case errors.Is(err, api.ErrOff):
		v.Off = true
	case isOf(err, "invalid"):
		v.Problem = sentence(api.Detail(err))
	default:
		return err
	}
	if c.wants("benefit") {
		c.renderPart("benefit", "numbers", v)
		return nil
	}
	c.render(http.StatusOK, "benefit", v)
	return nil
}

func (v *benefitView) fill() {
	v.Figures = gainsOf(&v.Benefit.Totals)
	for _, m := range v.Benefit.Totals.Money {
		v.Figures = append(v.Figures, paid(m))
	}
	v.Columns, v.Rows = compared(&v.Benefit)
	v.Compare = comparedInWords(&v.Benefit)
	v.Charts = chartsOf(&v.Benefit)
}

// gain is a figure with what it means.
type gain struct {
	Label, Value string
	Tone         string // good, warn, bad or plain
	Meaning      string
}

// gainsOf returns the figures of all exchanges, but for what they cost.
func gainsOf(t *api.Totals) []gain {
	perHit := "–"
	hits := t.Statuses["injected"] + t.Statuses["repaired"]
	if hits > 0 {
		perHit = fmt.Sprintf("%.1f", float64(t.Memories)/float64(hits))
	}
	return []gain{
		hitRate(t),
		{"Empty", rate(t.EmptyRate, t.Asked), "plain", "Nothing remembered mattered, and the request passed unchanged: usual for small talk and new subjects."},
		failures(t),
		{"Memories per request", perHit, "plain", "On average, where something new was inserted. " + plural(t.Memories, "memory", "memories") + " in all."},
		{
			"Tokens added", group(t.AddedTokens), "plain",
			percent(float64(t.AddedTokens), float64(t.InputTokens)) + " of all input, estimated from its size. Less is cheaper.",
		},
		cached(t),
		delay(t),
	}
}

// paid returns the figure of what all exchanges cost.
func paid(m api.Money) gain {
	return gain{
		"Paid", money(m.Paid, m.Currency), "plain",
		"For all tokens, at the prices in the configuration. The cache saved another " + money(m.Saved, m.Currency) + ", and " + money(m.Added, m.Currency) +
			" of what was paid is for what memory inserted.",
	}
}

// rate writes a share of what there may be nothing of.
func rate(share float64, all int) string {
	if all == 0 {
		return "–"
	}
	return percent(share, 1)
}

func hitRate(t *api.Totals) gain {
	g := gain{"Hit rate", rate(t.HitRate, t.Asked), "plain", ""}
	of := "of " + plural(t.Asked, "request", "requests") + " that asked for memory"
	switch {
	case t.Asked == 0:
		g.Meaning = "No request asked for memory."
	case t.HitRate >= usefulHitRate:
		g.Tone, g.Meaning = "good", "Memory had something for this share "+of+"."
	default:
		g.Meaning = "Memory had something for this share " + of + ". It grows with what is remembered."
	}
	return g
}

// Bounds from which on a figure is called good, or bad.
const (
	usefulHitRate = 0.25
	goodCached    = 0.5
	badFailRate   = 0.01
	slowMicros    = 50_000 // of the 95th percentile
)

func failures(t *api.Totals) gain {
	g := gain{"Timeouts and failures", rate(t.FailRate, t.Asked), "good", "Memory was always there in time."}
	switch {
	case t.Asked == 0:
		g.Tone, g.Meaning = "plain", "No request asked for memory."
	case t.FailRate >= badFailRate:
		g.Tone, g.Meaning = "bad", "These requests passed without memory. Health says why, and recall.deadline is how long recall may take."
	case t.FailRate > 0:
		g.Tone, g.Meaning = "warn", "A few requests passed without memory, such as the first ones after a start."
	}
	return g
}

func cached(t *api.Totals) gain {
	g := gain{"Cached share", rate(t.CacheReadShare, int(t.InputTokens)), "plain", "No upstream has reported tokens."}
	switch {
	case t.InputTokens == 0:
	case t.CacheReadShare >= goodCached:
		g.Tone, g.Meaning = "good", "Of the input, this share was read from the upstream’s prompt cache, which what is inserted leaves intact."
	default:
		g.Meaning = "Of the input, this share was read from the upstream’s prompt cache. Long conversations and instructions raise it."
	}
	return g
}

func delay(t *api.Totals) gain {
	p := t.Latency.Plan
	g := gain{"Time that memory takes", milliseconds(p.P50), "good", "In half of the requests at most; in 95 of 100 at most " + milliseconds(p.P95) + ". Nobody notices that."}
	switch {
	case p.P95 == 0:
		g.Tone, g.Meaning = "plain", "No request has waited for memory."
	case p.P95 > slowMicros:
		g.Tone, g.Meaning = "warn", "In half of the requests at most; in 95 of 100 at most "+milliseconds(p.P95)+". The first request of a user loads their index, and takes longer."
	}
	return g
}

// column is a group of exchanges that is compared.
type column struct {
	Name string
	t    *api.Totals
}

// comparison is a row of the table that compares.
type comparison struct {
	Name   string
	Values []string
}

// compared returns the groups that there are exchanges of, and what can be
// compared of them.
func compared(b *api.Benefit) (columns []column, rows []comparison) {
	for _, c := range [...]column{{"On", &b.On}, {"Observe", &b.Observe}, {"Off", &b.Off}} {
		if c.t.Exchanges > 0 {
			columns = append(columns, c)
		}
	}
	each := func(name string, value func(t *api.Totals) string) {
		row := comparison{Name: name}
		for _, c := range columns {
			row.Values = append(row.Values, value(c.t))
		}
		rows = append(rows, row)
	}
	average := func(n func(t *api.Totals) int64) func(t *api.Totals) string {
		return func(t *api.Totals) string { return group(n(t) / int64(t.Exchanges)) }
	}
	each("Requests", func(t *api.Totals) string { return group(int64(t.Exchanges)) })
	each("Hit rate", func(t *api.Totals) string { return rate(t.HitRate, t.Asked) })
	each("Input tokens, on average", average(func(t *api.Totals) int64 { return t.InputTokens }))
	each("Tokens added, on average", average(func(t *api.Totals) int64 { return t.AddedTokens }))
	each("Output tokens, on average", average(func(t *api.Totals) int64 { return t.OutputTokens }))
	each("Cached share of the input", func(t *api.Totals) string { return rate(t.CacheReadShare, int(t.InputTokens)) })
	for _, currency := range currencies(b) {
		each("Paid, on average", func(t *api.Totals) string {
			for _, m := range t.Money {
				if m.Currency == currency {
					return money(m.Paid/float64(t.Exchanges), currency)
				}
			}
			return "–"
		})
	}
	each("First byte, median", func(t *api.Totals) string { return milliseconds(t.Latency.FirstByte.P50) })
	each("First byte, 95th percentile", func(t *api.Totals) string { return milliseconds(t.Latency.FirstByte.P95) })
	each("Whole answer, median", func(t *api.Totals) string { return milliseconds(t.Latency.Total.P50) })
	return columns, rows
}

func currencies(b *api.Benefit) (out []string) {
	for _, m := range b.Totals.Money {
		out = append(out, m.Currency)
	}
	return out
}

// fewExchanges are too few to compare.
const fewExchanges = 20

// comparedInWords says what a comparison shows.
func comparedInWords(b *api.Benefit) string {
	other, name := &b.Observe, "in which memory only observed"
	if other.Exchanges == 0 {
		other, name = &b.Off, "without memory"
	}
	on := &b.On
	switch {
	case on.Exchanges == 0 || other.Exchanges == 0:
		return "There is nothing to compare with. Send some requests with the header X-Remora-Memory: observe, and they are counted next to the others."
	case min(on.Exchanges, other.Exchanges) < fewExchanges:
		return fmt.Sprintf("Fewer than %d requests of a kind are too few to tell a difference from chance.", fewExchanges)
	}
	at, without := on.Latency.FirstByte.P50, other.Latency.FirstByte.P50
	if at == 0 || without == 0 {
		return "The times of these requests are not known."
	}
	than := "as fast as"
	if d := at - without; d*20 > without {
		than = milliseconds(d) + " later than"
	} else if d*20 < -without {
		than = milliseconds(-d) + " earlier than"
	}
	return "Half of the requests with memory got their first byte " + than + " half of those " + name + "."
}
