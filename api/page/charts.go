package page

import (
	"maps"
	"slices"
	"time"

	"github.com/remora-proxy/remora/api"
)

// chart is numbers over time, with what the script draws of them.
type chart struct {
	Title, Meaning string
	Data           plot
	Rows           []comparison
	Step           string
}

// plot is what page.js reads: see charts() there.
type plot struct {
	X       []int64  `json:"x"` // seconds since 1970
	Series  []series `json:"series"`
	Unit    string   `json:"unit,omitempty"`
	Max     float64  `json:"max,omitempty"`
	Stacked bool     `json:"stacked,omitempty"`
}

type series struct {
	Name   string     `json:"name"`
	Values []*float64 `json:"values"` // nil = there is none
	Tone   string     `json:"tone"`
	Dash   bool       `json:"dash,omitempty"`
}

// statusOrder are the statuses that have a series, from the bottom of the
// stack; others are added up.
var statusOrder = []struct{ status, tone string }{
	{"injected", "accent"}, {"replayed", "info"}, {"observed", "good"}, {"empty", "line-2"}, {"timeout", "bad"}, {"unavailable", "bad"},
}

// chartsOf returns the charts of a series.
func chartsOf(b *api.Benefit) []chart {
	if b.Totals.Exchanges == 0 {
		return nil
	}
	var x []int64
	for _, p := range b.Series {
		at, _ := time.Parse(time.RFC3339, p.Time)
		x = append(x, at.Unix())
	}
	number := func(ok bool, v float64) *float64 {
		if !ok {
			return nil
		}
		return &v
	}
	line := func(name, tone string, dash bool, value func(p *api.Point) *float64) series {
		s := series{Name: name, Tone: tone, Dash: dash}
		for i := range b.Series {
			s.Values = append(s.Values, value(&b.Series[i]))
		}
		return s
	}
	requests := chart{Title: "Requests", Meaning: "What memory did for them, by status.", Data: plot{X: x, Stacked: true}}
	for _, s := range shownStatuses(b) {
		requests.Data.Series = append(requests.Data.Series, line(s.name, s.tone, false, func(p *api.Point) *float64 { return number(true, float64(s.count(p.Statuses))) }))
	}
	share := chart{Title: "Cached share", Meaning: "Of the input tokens, in per cent. Gaps have no requests.", Data: plot{X: x, Unit: " %", Max: 100}}
	share.Data.Series = []series{line("cached", "accent", false, func(p *api.Point) *float64 { return number(p.InputTokens > 0, p.CacheReadShare*100) })}
	took := chart{Title: "Time that memory takes", Meaning: "Before a request goes out: reading it, and recall. Median and 95th percentile.", Data: plot{X: x, Unit: " ms"}}
	took.Data.Series = []series{
		line("median", "accent", false, func(p *api.Point) *float64 { return number(p.Latency.Plan.P50 > 0, float64(p.Latency.Plan.P50)/1000) }),
		line("95th percentile", "warn", true, func(p *api.Point) *float64 { return number(p.Latency.Plan.P95 > 0, float64(p.Latency.Plan.P95)/1000) }),
	}
	out := []chart{requests, share, took}
	for i := range out {
		out[i].Step = b.Step
		out[i].Rows = tableOf(b, out[i].Data)
	}
	return out
}

// statusSeries is a status, or several, in a chart.
type statusSeries struct {
	name, tone string
	of         []string
}

func (s statusSeries) count(n map[string]int) (sum int) {
	for _, status := range s.of {
		sum += n[status]
	}
	return sum
}

// shownStatuses are the statuses that there are, the less usual ones together.
func shownStatuses(b *api.Benefit) (out []statusSeries) {
	rest := statusSeries{name: "other", tone: "warn"}
	for _, status := range slices.Sorted(maps.Keys(b.Totals.Statuses)) {
		if !slices.ContainsFunc(statusOrder, func(s struct{ status, tone string }) bool { return s.status == status }) {
			rest.of = append(rest.of, status)
		}
	}
	for _, s := range statusOrder {
		if b.Totals.Statuses[s.status] > 0 {
			out = append(out, statusSeries{s.status, s.tone, []string{s.status}})
		}
	}
	if len(rest.of) > 0 {
		out = append(out, rest)
	}
	return out
}

// tableOf returns the numbers of a chart, the newest first, without the steps
// that have none.
func tableOf(b *api.Benefit, p plot) (rows []comparison) {
	for i := range slices.Backward(b.Series) {
		if b.Series[i].Exchanges == 0 {
			continue
		}
		row := comparison{Name: stepName(b.Series[i].Time, b.Step)}
		for _, s := range p.Series {
			switch v := s.Values[i]; {
			case v == nil:
				row.Values = append(row.Values, "–")
			case p.Unit == " ms":
				row.Values = append(row.Values, milliseconds(int64(*v*1000)))
			case p.Unit == " %":
				row.Values = append(row.Values, percent(*v, 100))
			default:
				row.Values = append(row.Values, group(int64(*v)))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// stepName names a step of a series.
func stepName(at, step string) string {
	t, err := time.Parse(time.RFC3339, at)
	switch {
	case err != nil:
		return at
	case step == "hour":
		return t.UTC().Format("2 Jan, 15:04")
	}
	return t.UTC().Format("2 Jan 2006")
}
