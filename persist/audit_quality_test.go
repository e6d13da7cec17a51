package persist

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// TestPlantedFacts audits sets of conversations as they would arrive: those
// that the rules were tuned on, and those written afterwards. At least 80 % of
// the planted facts are saved, and at most 10 % of the rest.
func TestPlantedFacts(t *testing.T) {
	for _, file := range []string{"tuning.txt", "held-out.txt", "fresh.txt", "strangers-a.txt", "strangers-b.txt", "chinese-japanese.txt", "chinese-japanese-held-out.txt", "lives.txt"} {
		t.Run(file, func(t *testing.T) {
			facts, saved, noise, wrong, corrected, held := 0, 0, 0, 0, 0, 0
			for _, c := range readPlanted(t, file) {
				texts := auditedFacts(t, c.turns)
				for _, f := range c.facts {
					facts++
					if holdsLine(texts, f) {
						saved++
					} else {
						t.Logf("%s: not saved: %s", c.name, f)
					}
				}
				for _, n := range c.noise {
					noise++
					if strings.Contains(extract.Normalize(n), " ") && holdsLine(texts, n) {
						wrong++
						t.Logf("%s: saved: %s", c.name, n)
					}
				}
				for _, n := range c.wrong {
					corrected++
					if holdsLine(texts, n) {
						held++
						t.Logf("%s: still recalled: %s", c.name, n)
					}
				}
			}
			t.Logf("%d of %d planted facts saved, %d of %d commands, questions and small talk, %d of %d corrected statements",
				saved, facts, wrong, noise, held, corrected)
			if saved*100 < facts*80 || wrong*100 > noise*10 || held > 0 {
				t.Errorf("got %d of %d facts and %d of %d others; want at least 80 %% and at most 10 %%, and no corrected statement recalled", saved, facts, wrong, noise)
			}
		})
	}
}

// auditedFacts persists turns and returns the facts that can be recalled then.
func auditedFacts(t *testing.T, turns []Turn) []string {
	t.Helper()
	var texts []string
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		cfg := DefaultConfig()
		cfg.Retention, cfg.Facts.Retention, cfg.Facts.LongRetention = century, century, century
		p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
		for _, turn := range turns {
			mustEnqueue(t, p.Pipeline, turn)
			mustFlush(t, p.Pipeline)
		}
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, m := range factsOf(t, store, testScope) {
			if m.Trust > 0 && m.SupersededBy == "" {
				texts = append(texts, m.Text)
			}
		}
		p.stop()
	})
	return texts
}

func factsOf(t testing.TB, s storage.Store, scope storage.Scope) []storage.Memory {
	t.Helper()
	page, err := s.Scan(t.Context(), scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}})
	if err != nil {
		t.Fatal(err)
	}
	return page.Memories
}

// holdsLine reports whether one of the facts holds a planted line, or is more
// than half of it.
func holdsLine(facts []string, line string) bool {
	want := extract.Normalize(line)
	for _, f := range facts {
		quote, _, _ := extract.Quotation(f)
		got := extract.Normalize(quote)
		if strings.Contains(got, want) || strings.Contains(want, got) && len(got)*2 > len(want) {
			return true
		}
	}
	return false
}
