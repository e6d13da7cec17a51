package persist

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// turnFromFastClock returns a turn that was said while the clock was two hours
// ahead.
func turnFromFastClock(id, text string) Turn {
	turn := userTurn(id, text)
	for i := range turn.Messages {
		turn.Messages[i].Time = storage.TimeOf(time.Now().Add(2 * time.Hour))
	}
	return turn
}

// TestForgottenDespiteFastClock checks that what was said while the clock was
// ahead stays forgotten when its turn comes again.
func TestForgottenDespiteFastClock(t *testing.T) {
	for _, whole := range []bool{false, true} {
		withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
			turn := turnFromFastClock("t1", "I'm allergic to peanuts.")
			p.settle(t, turn)
			facts := factsOf(t, store, testScope)
			if len(facts) != 1 {
				t.Fatalf("facts %q", current(facts))
			}
			var err error
			if whole {
				_, err = p.ForgetConversation(t.Context(), testScope, turn.Conversation)
			} else {
				_, err = p.ForgetMemories(t.Context(), testScope, facts[0].ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			turn.Messages[0].Text += " I live in Porto."
			p.settle(t, turn)
			for _, f := range current(factsOf(t, store, testScope)) {
				if strings.Contains(f, "peanuts") {
					t.Errorf("whole conversation %v: %q is back", whole, f)
				}
			}
			time.Sleep(time.Minute)
			again := userTurn("t2", "I'm allergic to peanuts.")
			again.Conversation = "another"
			p.settle(t, again)
			if got := current(factsOf(t, store, testScope)); !slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "peanuts") }) {
				t.Errorf("whole conversation %v: said again since, and not a fact: %q", whole, got)
			}
		})
	}
}

// TestNewestHoldsAfterClockCorrection checks that what is said now is newer
// than what a fast clock dated later.
func TestNewestHoldsAfterClockCorrection(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, turnFromFastClock("t1", "I live in Porto."))
		p.settle(t, userTurn("t2", "I live in Lisbon now."))
		if got := current(factsOf(t, store, testScope)); len(got) != 1 || !strings.Contains(got[0], "Lisbon") {
			t.Errorf("current facts %q", got)
		}
	})
}

// TestForgetReachesOtherVersions checks that other versions of a forgotten
// turn, queued or set aside, are forgotten and counted.
func TestForgetReachesOtherVersions(t *testing.T) {
	for _, aside := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := newFaulty()
			p := start(t, New(DefaultConfig(), store, store, &indexed{}, newRedactor(t), nil, nil))
			defer p.stop()
			const words = "my blood type is zebra negative"
			mustEnqueue(t, p.Pipeline, turnOf(testScope, "t1", words, "one"))
			mustFlush(t, p.Pipeline)
			if aside {
				store.mu.Lock()
				store.fault = func(method string, _ int) (error, bool) {
					if method == "Put" {
						return storage.ErrInvalid, false
					}
					return nil, false
				}
				store.mu.Unlock()
			}
			mustEnqueue(t, p.Pipeline, turnOf(testScope, "t1", words, "two"))
			if aside {
				mustFlush(t, p.Pipeline)
				store.mu.Lock()
				store.fault = nil
				store.mu.Unlock()
			}
			var ids []string
			page, err := store.Scan(t.Context(), testScope, storage.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Memories {
				ids = append(ids, m.ID)
			}
			got, err := p.ForgetMemories(t.Context(), testScope, ids...)
			if err != nil || got.Memories != 2 || got.Queued+got.Spooled != 1 {
				t.Errorf("set aside %v: erasure %+v, %v", aside, got, err)
			}
			mustFlush(t, p.Pipeline)
			if page, err := store.Scan(t.Context(), testScope, storage.Query{}); err != nil || len(page.Memories) != 0 {
				t.Errorf("set aside %v: %d memories are back: %v", aside, len(page.Memories), err)
			}
			left, err := store.AllRecords(t.Context(), storage.BucketSpool, "", 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range left.Records {
				if strings.Contains(string(r.Value), "zebra") {
					t.Errorf("set aside %v: the words are in the spool still", aside)
				}
			}
			if q, err := p.Quarantined(t.Context()); err != nil || len(q) != 0 || p.storer.aside != 0 {
				t.Errorf("set aside %v: %d turns are set aside, %d counted: %v", aside, len(q), p.storer.aside, err)
			}
		})
	}
}
