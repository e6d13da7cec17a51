package page

import (
	"net/url"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
)

func TestComparedInWords(t *testing.T) {
	totals := func(n int, firstByte int64) api.Totals {
		return api.Totals{Exchanges: n, Latency: api.Latency{FirstByte: api.Percentiles{P50: firstByte}}}
	}
	for name, c := range map[string]struct {
		b    api.Benefit
		want string
	}{
		"nothing beside":  {api.Benefit{On: totals(500, 10)}, "nothing to compare"},
		"only observed":   {api.Benefit{Observe: totals(500, 10)}, "nothing to compare"},
		"too few":         {api.Benefit{On: totals(500, 10), Observe: totals(fewExchanges-1, 10)}, "too few"},
		"slower":          {api.Benefit{On: totals(500, 300_000), Observe: totals(500, 200_000)}, "100 ms later than half of those in which memory only observed"},
		"faster":          {api.Benefit{On: totals(500, 200_000), Observe: totals(500, 300_000)}, "100 ms earlier than"},
		"as fast":         {api.Benefit{On: totals(500, 201_000), Observe: totals(500, 200_000)}, "as fast as"},
		"without memory":  {api.Benefit{On: totals(500, 300_000), Off: totals(500, 200_000)}, "half of those without memory"},
		"times not known": {api.Benefit{On: totals(500, 0), Off: totals(500, 200_000)}, "not known"},
	} {
		if got := comparedInWords(&c.b); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", name, got, c.want)
		}
	}
}

func TestCharts(t *testing.T) {
	b := api.Benefit{Step: "day", Totals: api.Totals{Exchanges: 7, Statuses: map[string]int{"injected": 3, "empty": 2, "no-user": 1, "too-large": 1}}}
	point := func(at string, statuses map[string]int, input int64) api.Point {
		p := api.Point{Time: at, Totals: api.Totals{Statuses: statuses, InputTokens: input, CacheReadShare: 0.5}}
		for _, n := range statuses {
			p.Exchanges += n
		}
		return p
	}
	b.Series = []api.Point{
		point("2026-05-01T00:00:00Z", map[string]int{"injected": 3, "no-user": 1, "too-large": 1}, 100),
		point("2026-05-02T00:00:00Z", nil, 0),
		point("2026-05-03T00:00:00Z", map[string]int{"empty": 2}, 100),
	}
	charts := chartsOf(&b)
	var names []string
	for _, s := range charts[0].Data.Series {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "injected empty other" {
		t.Errorf("series %q", got)
	}
	if other := *charts[0].Data.Series[2].Values[0]; other != 2 {
		t.Errorf("%v other requests, want 2", other)
	}
	if share := charts[1].Data.Series[0].Values; share[1] != nil || *share[0] != 50 {
		t.Errorf("cached share %v, want a gap where there is no request", share)
	}
	rows := charts[0].Rows
	if len(rows) != 2 || rows[0].Name != "3 May 2026" || strings.Join(rows[1].Values, " ") != "3 0 2" {
		t.Errorf("table %+v, want the two days with requests, the newest first", rows)
	}
}

func TestSpell(t *testing.T) {
	if got := spellOf(url.Values{"period": {"forever"}}).Period; got != "7d" {
		t.Errorf("an unknown period is %q", got)
	}
	s := spellOf(url.Values{"only": {"project=p&tenant=t&user=ada"}})
	if want := (api.Target{Tenant: "t", Project: "p", User: "ada"}); s.target() != want {
		t.Errorf("target %+v, want %+v", s.target(), want)
	}
	people := []api.User{{Tenant: "t", App: "a", Project: "p", User: "bob"}}
	if got := choices(people, s); len(got) != 2 || got[1].Name != "ada · p" {
		t.Errorf("choices %+v, want the one that is chosen, too", got)
	}
	if got := choices(people, spell{}); len(got) != 1 {
		t.Errorf("choices %+v, want those that there are", got)
	}
}

func TestGains(t *testing.T) {
	tones := func(total api.Totals) map[string]string {
		out := map[string]string{}
		for _, g := range gainsOf(&total) {
			out[g.Label] = g.Tone
			if g.Meaning == "" {
				t.Errorf("%s has no meaning", g.Label)
			}
		}
		return out
	}
	good := tones(api.Totals{Asked: 10, HitRate: 0.5, InputTokens: 10, CacheReadShare: 0.8, Latency: api.Latency{Plan: api.Percentiles{P50: 100, P95: 900}}})
	bad := tones(api.Totals{Asked: 10, FailRate: 0.2, Latency: api.Latency{Plan: api.Percentiles{P50: 100, P95: 900_000}}})
	for label, want := range map[string][2]string{
		"Hit rate": {"good", "plain"}, "Timeouts and failures": {"good", "bad"}, "Cached share": {"good", "plain"}, "Time that memory takes": {"good", "warn"},
	} {
		if got := [2]string{good[label], bad[label]}; got != want {
			t.Errorf("%s: %q, want %q", label, got, want)
		}
	}
}
