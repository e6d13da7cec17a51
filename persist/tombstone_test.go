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
// that passage audited again in every way that there is. Only what is said
// after the forgetting is a fact again.
func TestForgottenFactsStayForgotten(t *testing.T) {
	peanuts := "I'm allergic to peanuts."
	begin := func(t *testing.T, index Indexer, store *faulty) running {
		return start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
	}
	for name, again := range map[string]func(t *testing.T, p *running, store *faulty){
		"its window again": func(t *testing.T, p *running, _ *faulty) {
			p.settle(t, said("t2", "We like the guests of the dinner."))
		},
		"its turn reworded": func(t *testing.T, p *running, _ *faulty) {
			p.settle(t, said("t1", peanuts+" And we like the guests."))
		},
		"in another turn of that time": func(t *testing.T, p *running, _ *faulty) {
			p.settle(t, saidAt("t3", "Hey, i am really ALLERGIC to Peanuts!", "I see. Dinner is ready.", time.Now().Add(-2*time.Hour)))
		},
		"another value for its subject": func(t *testing.T, p *running, _ *faulty) {
			p.settle(t, saidAt("t3", "My name is Zoe.", "I see. Dinner is ready.", time.Now().Add(-2*time.Hour)))
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
				p.settle(t, said("t1", peanuts+" Please call me Zoe."))
				p.settle(t, said("t1b", "As I said, I'm allergic to peanuts."))
				time.Sleep(time.Hour)
				if _, err := p.ForgetMemories(t.Context(), testScope, factWith(t, store, "peanuts"), factWith(t, store, "Zoe")); err != nil {
					t.Fatal(err)
				}
				again(t, &p, store)
				if got := current(factsOf(t, store, testScope)); len(got) > 0 {
					t.Errorf("came back: %v", got)
				}
				time.Sleep(time.Hour)
				p.settle(t, said("later", peanuts))
				if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, []string{`"` + peanuts + `"`}) {
					t.Errorf("said again: %v", got)
				}
				p.stop()
			})
		})
	}
}

// TestForgetFailsHalfway: the store goes away between tombstone and deletion,
// before and after the write took effect. The fact is still there, and
// forgetting it again works.
func TestForgetFailsHalfway(t *testing.T) {
	for _, after := range []bool{false, true} {
		audited(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
			p.settle(t, said("t1", "I'm allergic to peanuts."))
			id := factWith(t, store, "peanuts")
			store.breakBy(func(method string, _ int) (error, bool) {
				if method == "PutRecords" {
					return storage.ErrUnavailable, after
				}
				return nil, false
			})
			if _, err := p.ForgetMemories(t.Context(), testScope, id); !errors.Is(err, storage.ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
			store.heal()
			if _, err := store.Memory(t.Context(), testScope, id); err != nil {
				t.Errorf("the fact went without a tombstone: %v", err)
			}
			if _, err := p.ForgetMemories(t.Context(), testScope, id); err != nil {
				t.Fatal(err)
			}
			p.settle(t, said("t1", "I'm allergic to peanuts. And we like the guests."))
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

// TestTombstonesAreBounded: they hold no words, the oldest go beyond the bound,
// and all of them with the user.
func TestTombstonesAreBounded(t *testing.T) {
	audited(t, func(c *Config) { c.Facts.MaxForgotten = 3; c.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		for i := range 5 {
			p.settle(t, said(fmt.Sprint("t", i), fmt.Sprintf("I have %d cats at home.", i+2)))
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
			t.Errorf("after another conversation went: %d tombstones, want 3", n)
		}
		if _, err := p.ForgetUser(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
		if n, _ := tombstones(t, store); n != 0 {
			t.Errorf("after the user went: %d tombstones", n)
		}
	})
}
