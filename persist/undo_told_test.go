package persist

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// stubborn is a store in which memories can't be deleted one by one while it refuses.
type stubborn struct {
	*faulty
	mu      sync.Mutex
	refuses bool
}

func (s *stubborn) refuse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = on
}

func (s *stubborn) Delete(ctx context.Context, scope storage.Scope, ids ...string) (int, error) {
	s.mu.Lock()
	refuses := s.refuses
	s.mu.Unlock()
	if refuses {
		return 0, fmt.Errorf("%w: away", storage.ErrUnavailable)
	}
	return s.faulty.Delete(ctx, scope, ids...)
}

// catalogue is an Indexer that knows the memories of each scope.
type catalogue struct {
	mu  sync.Mutex
	ids map[storage.Scope][]string
}

func (x *catalogue) Add(scope storage.Scope, _ string, ms []storage.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range ms {
		x.ids[scope] = append(x.ids[scope], ms[i].ID)
	}
}

func (x *catalogue) Forget(storage.Scope, ...string) {}

// TestUndoneRoundsAreIndexed: facts that a round has stored before it gives way to an erasure can be found, though the next one finds
// nothing new in what they were made of.
func TestUndoneRoundsAreIndexed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, index := &stubborn{faulty: newFaulty()}, &catalogue{ids: map[storage.Scope][]string{}}
		cfg := DefaultConfig()
		cfg.Facts.EpisodeBytes = 100 // so that each round has something to delete
		p := start(t, New(cfg, store, store, index, redactor(t), nil, nil))
		defer p.stop()
		gone := said("g1", "I live in Faro.")
		gone.Scope = userScope(9)
		p.tell(t, gone)
		var scopes []storage.Scope
		store.refuse(true)
		for i := range 3 {
			turn := said(fmt.Sprint("t", i), "I live in Porto.")
			turn.Scope = userScope(i)
			scopes = append(scopes, turn.Scope)
			mustEnqueue(t, p.Pipeline, turn)
		}
		mustFlush(t, p.Pipeline)
		time.Sleep(10 * time.Minute) // audits are due
		if _, err := p.ForgetUser(t.Context(), gone.Scope); err != nil {
			t.Fatal(err)
		}
		store.refuse(false)
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, scope := range scopes {
			for _, m := range factsOf(t, store.faulty, scope) {
				if !slices.Contains(index.ids[scope], m.ID) {
					t.Errorf("%s: not indexed: %s", scope.User, m.Text)
				}
			}
		}
		if made := p.Metrics().Audits.Made; made != 4 {
			t.Errorf("%d audits were made, want 4", made)
		}
	})
}

// TestStoredRoundsStand: a round of which only old marks could not be cleared is not made again.
func TestStoredRoundsStand(t *testing.T) {
	audited(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		other := said("o1", "I live in Graz.")
		other.Scope = userScope(2)
		p.tell(t, other)
		p.tell(t, said("t1", "I live in Porto."))
		time.Sleep(idleMark - time.Minute)
		second := said("t2", "My sister Ines is allergic to peanuts.")
		second.Conversation = "elsewhere"
		mustEnqueue(t, p.Pipeline, second)
		mustFlush(t, p.Pipeline)
		synctest.Wait()
		store.refusing(func(m string) bool { return m == "DeleteRecords" })
		time.Sleep(idleMark)                           // the first mark goes together with the audit of the second
		_, _ = p.ForgetUser(t.Context(), userScope(2)) // which fails, or not: it finds no marks, or some
		time.Sleep(time.Minute)
		store.refusing(nil)
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if made := p.Metrics().Audits.Made; made != 3 {
			t.Errorf("%d audits were made, want 3", made)
		}
	})
}
