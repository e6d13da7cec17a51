package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// undeletable is a store that refuses to delete single memories.
type undeletable struct {
	*faulty
	mu      sync.Mutex
	refuses bool
}

func (s *undeletable) refuse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = on
}

func (s *undeletable) Delete(ctx context.Context, scope storage.Scope, ids ...string) (int, error) {
	s.mu.Lock()
	refuses := s.refuses
	s.mu.Unlock()
	if refuses {
		return 0, fmt.Errorf("%w: away", storage.ErrUnavailable)
	}
	return s.faulty.Delete(ctx, scope, ids...)
}

// memoryIndex is an Indexer that keeps the memories of each scope.
type memoryIndex struct {
	mu  sync.Mutex
	ids map[storage.Scope][]string
}

func (x *memoryIndex) Add(scope storage.Scope, _ string, ms []storage.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range ms {
		x.ids[scope] = append(x.ids[scope], ms[i].ID)
	}
}

func (x *memoryIndex) Forget(scope storage.Scope, ids ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ids[scope] = slices.DeleteFunc(x.ids[scope], func(id string) bool { return slices.Contains(ids, id) })
}

// of returns the ids of a scope.
func (x *memoryIndex) of(scope storage.Scope) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	ids := slices.Sorted(slices.Values(x.ids[scope]))
	return slices.Compact(ids)
}

// TestUndoneRoundsAreIndexed checks that facts that a round stored before it
// yielded to an erasure can be found, although the next round finds nothing
// new.
func TestUndoneRoundsAreIndexed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, index := &undeletable{faulty: newFaulty()}, &memoryIndex{ids: map[storage.Scope][]string{}}
		cfg := DefaultConfig()
		cfg.Facts.EpisodeBytes = 100 // so that each round has something to delete
		p := start(t, New(cfg, store, store, index, newRedactor(t), nil, nil))
		defer p.stop()
		gone := userTurn("g1", "I live in Faro.")
		gone.Scope = userScope(9)
		p.settle(t, gone)
		var scopes []storage.Scope
		store.refuse(true)
		for i := range 3 {
			turn := userTurn(fmt.Sprint("t", i), "I live in Porto.")
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

// TestStoredRoundIsNotRepeated checks that a round of which only old marks
// could not be deleted is not made again.
func TestStoredRoundIsNotRepeated(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		other := userTurn("o1", "I live in Graz.")
		other.Scope = userScope(2)
		p.settle(t, other)
		p.settle(t, userTurn("t1", "I live in Porto."))
		time.Sleep(idleMark - time.Minute)
		second := userTurn("t2", "My sister Ines is allergic to peanuts.")
		second.Conversation = "elsewhere"
		mustEnqueue(t, p.Pipeline, second)
		mustFlush(t, p.Pipeline)
		synctest.Wait()
		store.refuseWhere(func(m string) bool { return m == "DeleteRecords" })
		time.Sleep(idleMark)                           // the first mark goes together with the audit of the second
		_, _ = p.ForgetUser(t.Context(), userScope(2)) // which fails, or not: it finds no marks, or some
		time.Sleep(time.Minute)
		store.refuseWhere(nil)
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if made := p.Metrics().Audits.Made; made != 3 {
			t.Errorf("%d audits were made, want 3", made)
		}
	})
}

// TestUndoneWritesAreIndexed checks that the index learns of a write or
// deletion that took effect although it failed, when its round has yielded to
// an erasure.
func TestUndoneWritesAreIndexed(t *testing.T) {
	for name, lost := range map[string]string{"a write": "Put", "a deletion": "Delete"} {
		synctest.Test(t, func(t *testing.T) {
			store, index := newFaulty(), &memoryIndex{ids: map[storage.Scope][]string{}}
			cfg := DefaultConfig()
			cfg.Facts.EpisodeBytes = 100 // so that there is something to delete
			p := start(t, New(cfg, store, store, index, newRedactor(t), nil, nil))
			defer p.stop()
			gone := userTurn("g1", "I live in Faro.")
			gone.Scope = userScope(9)
			p.settle(t, gone)
			mustEnqueue(t, p.Pipeline, userTurn("t1", "I live in Porto."))
			mustFlush(t, p.Pipeline)
			synctest.Wait()
			store.setFault(func(method string, _ int) (error, bool) { // until it is over, whatever it does
				if method == lost {
					return fmt.Errorf("%w: connection lost", storage.ErrUnavailable), true
				}
				return nil, false
			})
			time.Sleep(10 * time.Minute) // the audit is due
			if _, err := p.ForgetUser(t.Context(), gone.Scope); err != nil {
				t.Fatal(err)
			}
			store.clearFault()
			if err := p.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			page, err := store.Scan(t.Context(), testScope, storage.Query{})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, m := range page.Memories {
				want = append(want, m.ID)
			}
			slices.Sort(want)
			if len(factsOf(t, store, testScope)) == 0 || lost == "Delete" && len(want) > 2 {
				t.Fatalf("%s: nothing was lost: %v", name, want)
			}
			if diff := cmp.Diff(want, index.of(testScope)); diff != "" {
				t.Errorf("%s: the index knows (-stored +indexed):\n%s", name, diff)
			}
		})
	}
}

// TestErasureWithLostAnswer checks that an erasure that took effect although
// the store failed reaches the index, is counted, and is completed. If the
// store keeps failing, the index forgets all the same.
func TestErasureWithLostAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		lost   string
		forget func(context.Context, running) (Erasure, error)
	}{
		"a memory": {"Delete", func(ctx context.Context, p running) (Erasure, error) {
			return p.ForgetMemories(ctx, testScope, "t1.0", "t1.1")
		}},
		"a user": {"Erase", func(ctx context.Context, p running) (Erasure, error) { return p.ForgetUser(ctx, testScope) }},
	} {
		for _, forGood := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store, index := newFaulty(), &droppingIndex{}
				p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
				defer p.stop()
				p.settle(t, userTurn("t1", "I'm allergic to peanuts and hazelnuts."))
				before := store.count(c.lost)
				store.setFault(func(method string, n int) (error, bool) {
					if method == c.lost && (forGood || n == before+1) {
						return fmt.Errorf("%w: connection lost", storage.ErrUnavailable), true
					}
					return nil, false
				})
				_, err := c.forget(t.Context(), p)
				if forGood != errors.Is(err, storage.ErrUnavailable) || !forGood && err != nil {
					t.Errorf("%s, permanently %v: %v", name, forGood, err)
				}
				if len(index.forgot)+len(index.dropped) == 0 {
					t.Errorf("%s, permanently %v: the index was not updated", name, forGood)
				}
				store.clearFault()
				if left := allOf(t, store, testScope); !forGood && strings.Contains(fmt.Sprint(left), "summary") {
					t.Errorf("%s: left %v", name, left)
				}
			})
		}
	}
}
