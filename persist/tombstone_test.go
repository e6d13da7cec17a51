package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// factWith returns the id of the fact that holds a word.
func factWith(t *testing.T, s storage.Store, word string) string {
	t.Helper()
	for _, m := range factsOf(t, s, testScope) {
		if strings.Contains(m.Text, word) {
			return m.ID
		}
	}
	t.Fatalf("no fact with %q", word)
	return ""
}

// TestForgottenFactsStayForgotten forgets a fact whose passage stays, and has
// that passage audited again in every possible way. Only what is said after the
// forgetting is a fact again.
func TestForgottenFactsStayForgotten(t *testing.T) {
	peanuts := "I'm allergic to peanuts."
	begin := func(t *testing.T, index Indexer, store *faulty) running {
		return start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
	}
	for name, again := range map[string]func(t *testing.T, p *running, store *faulty){
		"its window again": func(t *testing.T, p *running, _ *faulty) {
			p.settle(t, userTurn("t2", "We like the guests of the dinner."))
		},
		"its turn reworded": func(t *testing.T, p *running, _ *faulty) {
			p.settle(t, userTurn("t1", peanuts+" And we like the guests."))
		},
		"in another turn of that time": func(t *testing.T, p *running, _ *faulty) {
			p.settle(t, turnAt("t3", "Hey, i am really ALLERGIC to Peanuts!", "I see. Dinner is ready.", time.Now().Add(-2*time.Hour)))
		},
		"another value for its subject": func(t *testing.T, p *running, _ *faulty) {
			p.settle(t, turnAt("t3", "My name is Zoe.", "I see. Dinner is ready.", time.Now().Add(-2*time.Hour)))
		},
		"after a crash": func(t *testing.T, p *running, store *faulty) {
			p.stop()
			value, err := encodeMark("c1", 0)
			if err != nil {
				t.Fatal(err)
			}
			mark := storage.Record{Bucket: storage.BucketSpool, Scope: testScope, Key: markPrefix + "x", Value: value}
			if err := store.PutRecords(t.Context(), []storage.Record{mark}); err != nil {
				t.Fatal(err)
			}
			*p = begin(t, nil, store)
			time.Sleep(time.Second)
			synctest.Wait()
			if p.Metrics().Audits.Made == 0 {
				t.Error("nothing was audited again")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				p := begin(t, nil, store)
				p.settle(t, userTurn("t1", peanuts+" Please call me Zoe."))
				p.settle(t, userTurn("t1b", "As I said, I'm allergic to peanuts."))
				time.Sleep(time.Hour)
				if _, err := p.ForgetMemories(t.Context(), testScope, factWith(t, store, "peanuts"), factWith(t, store, "Zoe")); err != nil {
					t.Fatal(err)
				}
				again(t, &p, store)
				if got := current(factsOf(t, store, testScope)); len(got) > 0 {
					t.Errorf("came back: %v", got)
				}
				time.Sleep(time.Hour)
				p.settle(t, userTurn("later", peanuts))
				if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, []string{`"` + peanuts + `"`}) {
					t.Errorf("said again: %v", got)
				}
				p.stop()
			})
		})
	}
}

// TestForgetFailsHalfway makes the store fail between tombstone and deletion,
// before and after the write took effect. The fact is still there, and
// forgetting it again works.
func TestForgetFailsHalfway(t *testing.T) {
	for _, after := range []bool{false, true} {
		withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
			p.settle(t, userTurn("t1", "I'm allergic to peanuts."))
			id := factWith(t, store, "peanuts")
			store.setFault(func(method string, _ int) (error, bool) {
				if method == "PutRecords" {
					return storage.ErrUnavailable, after
				}
				return nil, false
			})
			if _, err := p.ForgetMemories(t.Context(), testScope, id); !errors.Is(err, storage.ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
			store.clearFault()
			if _, err := store.Memory(t.Context(), testScope, id); err != nil {
				t.Errorf("the fact was deleted without a tombstone: %v", err)
			}
			if _, err := p.ForgetMemories(t.Context(), testScope, id); err != nil {
				t.Fatal(err)
			}
			p.settle(t, userTurn("t1", "I'm allergic to peanuts. And we like the guests."))
			if got := current(factsOf(t, store, testScope)); len(got) > 0 {
				t.Errorf("came back: %v", got)
			}
		})
	}
}

func tombstones(t *testing.T, store *faulty) (n int, values string) {
	t.Helper()
	page, err := store.Records(context.Background(), storage.BucketAudit, testScope, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		if facts.IsTombstone(&r) {
			n++
			values += string(r.Value)
			if r.ExpiresAt == 0 {
				t.Error("a tombstone that does not expire")
			}
		}
	}
	return n, values
}

// TestTombstonesAreBounded checks that tombstones hold no words, that the
// oldest are deleted beyond the limit, and all of them with the user.
func TestTombstonesAreBounded(t *testing.T) {
	withPipeline(t, func(c *Config) { c.Facts.MaxForgotten = 3; c.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		for i := range 5 {
			p.settle(t, userTurn(fmt.Sprint("t", i), fmt.Sprintf("I have %d cats at home.", i+2)))
		}
		for i := range 5 {
			time.Sleep(time.Second)
			if _, err := p.ForgetMemories(t.Context(), testScope, factWith(t, store, fmt.Sprint(i+2, " cats"))); err != nil {
				t.Fatal(err)
			}
		}
		n, values := tombstones(t, store)
		if n != 3 || strings.Contains(values, "cat") {
			t.Errorf("%d tombstones: %s", n, values)
		}
		if _, err := p.ForgetConversation(t.Context(), testScope, ""); err != nil {
			t.Fatal(err)
		}
		if n, _ := tombstones(t, store); n != 3 {
			t.Errorf("after another conversation was forgotten: %d tombstones, want 3", n)
		}
		if _, err := p.ForgetUser(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
		if n, _ := tombstones(t, store); n != 0 {
			t.Errorf("after the user was erased: %d tombstones", n)
		}
	})
}
