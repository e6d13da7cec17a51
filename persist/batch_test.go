package persist

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// TestNewTurnsAreLookedUpTogether limits the calls that a batch costs: each
// waits for the store's process.
func TestNewTurnsAreLookedUpTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		cfg := DefaultConfig()
		cfg.TurnsPerSecond = 0
		p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
		for i := range 200 {
			mustEnqueue(t, p.Pipeline, turnOf(testScope, fmt.Sprint("t", i), fmt.Sprint("words ", i), ""))
		}
		mustFlush(t, p.Pipeline)
		if memories, probes := store.count("Memory"), store.count("Probe"); memories > 0 || probes > 4 {
			t.Errorf("200 new turns: %d calls of Memory, %d of Probe", memories, probes)
		}
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t7", "words 7", ""))
		mustFlush(t, p.Pipeline)
		if s := p.Stats(); s.Duplicates != 1 || s.Indexed != 200 {
			t.Errorf("a turn again: %+v", s)
		}
		p.stop()
	})
}

// TestSpoolCommitTakesWhatQueuedUp checks that commits grow under load, up to
// the limits of a commit.
func TestSpoolCommitTakesWhatQueuedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			size, minTurns, maxTurns int
		}{
			{10, defaultTuning.maxBatchTurns, defaultTuning.maxBatchTurns},
			{8 << 10, 2, commitBytes / (8 << 10)},
		} {
			store := newFaulty()
			store.Fail(true)
			cfg := DefaultConfig()
			cfg.TurnsPerSecond = 0
			p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
			for i := range 600 {
				mustEnqueue(t, p.Pipeline, turnOf(testScope, fmt.Sprint("t", i), strings.Repeat("word ", test.size/5), ""))
			}
			store.Fail(false)
			mustFlush(t, p.Pipeline)
			largest, sum := 0, 0
			for _, records := range store.spool {
				largest, sum = max(largest, len(records)), sum+len(records)
			}
			if largest < test.minTurns || largest > test.maxTurns || sum != 600 {
				t.Errorf("turns of %d bytes: largest commit has %d, want %d to %d; %d in all", test.size, largest, test.minTurns, test.maxTurns, sum)
			}
			p.stop()
		}
	})
}

// TestRoundStoresFactsTogether checks the same for the facts of audits, and
// that the refusal of one scope's facts costs the others nothing.
func TestRoundStoresFactsTogether(t *testing.T) {
	for _, refused := range []string{"", "u3"} {
		synctest.Test(t, func(t *testing.T) {
			store := newFaulty()
			facts := func(ws []storage.Write) (scopes map[string]bool) {
				scopes = map[string]bool{}
				for _, w := range ws {
					for _, m := range w.Memories {
						if m.Kind == storage.KindFact {
							scopes[w.Scope.User] = true
						}
					}
				}
				return scopes
			}
			store.setFault(func(method string, _ int) (error, bool) {
				if method == "Put" && facts(store.lastPut())[refused] {
					return storage.ErrInvalid, false
				}
				return nil, false
			})
			p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
			const users = 8
			for i := range users {
				scope := testScope
				scope.User = fmt.Sprint("u", i)
				mustEnqueue(t, p.Pipeline, turnOf(scope, fmt.Sprint("t", i), "I'm allergic to peanuts and to shellfish.", "Noted."))
			}
			if err := p.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			puts, stored := 0, 0
			for _, ws := range store.put {
				if n := len(facts(ws)); n > 0 {
					puts, stored = puts+1, max(stored, n)
				}
			}
			if stored != users || refused == "" && puts != 1 {
				t.Errorf("refused %q: facts came in %d puts, of %d users at most", refused, puts, stored)
			}
			for i := range users {
				scope := testScope
				scope.User = fmt.Sprint("u", i)
				page, err := store.Scan(t.Context(), scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}})
				want := 1
				if scope.User == refused {
					want = 0
				}
				if err != nil || len(page.Memories) != want {
					t.Errorf("refused %q: %s has %d facts, want %d; %v", refused, scope.User, len(page.Memories), want, err)
				}
			}
			p.stop()
		})
	}
}

// TestNoMarkRemains checks that audits which were made are not made again at
// the next start, however many they are.
func TestNoMarkRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		cfg := DefaultConfig()
		cfg.TurnsPerSecond = 0
		p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
		for i := range 2*storage.MaxRecords + 100 {
			turn := turnOf(testScope, fmt.Sprint("t", i), "I like tea.", "")
			turn.Conversation = fmt.Sprint("c", i)
			mustEnqueue(t, p.Pipeline, turn)
		}
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p.stop()
		left := 0
		for after := ""; ; {
			page, err := store.AllRecords(t.Context(), storage.BucketSpool, after, 0)
			if err != nil {
				t.Fatal(err)
			}
			left += len(page.Records)
			if after = page.Next; after == "" {
				break
			}
		}
		if left > 0 {
			t.Errorf("%d marks are left", left)
		}
	})
}
