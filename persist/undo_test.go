package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// refusing has a store refuse what which says, as a full disk does, until it is
// called with nil.
func (f *faulty) refusing(which func(method string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = nil
	if which != nil {
		f.fault = func(method string, _ int) (error, bool) {
			if which(method) {
				return fmt.Errorf("%w: no space", storage.ErrUnavailable), false
			}
			return nil, false
		}
	}
}

// factsIn lists the facts of a scope.
func factsIn(t *testing.T, store *faulty, scope storage.Scope) []string {
	t.Helper()
	page, err := store.Scan(t.Context(), scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range page.Memories {
		out = append(out, page.Memories[i].Text)
	}
	return out
}

// TestErasureWhileAuditsWait: audits that can't be stored hold up no erasure,
// whatever of them fails. What is left is audited when there is space again,
// once; of what is forgotten nothing is.
func TestErasureWhileAuditsWait(t *testing.T) {
	declining := proposer(func([]extract.Message) ([]extract.Proposal, error) { return nil, errors.New("not now") })
	for name, which := range map[string]func(string) bool{
		"facts":   func(m string) bool { return m == "Put" },
		"records": func(m string) bool { return m == "PutRecords" },
		"all":     func(m string) bool { return strings.HasPrefix(m, "Put") },
	} {
		for _, model := range []Distiller{nil, declining} {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				pipe := New(DefaultConfig(), store, store, &indexed{}, newRedactor(t), nil, nil)
				if model != nil {
					pipe.SetDistiller(model)
				}
				p := start(t, pipe)
				defer p.stop()
				other, same := said("o1", "I live in Graz."), said("t2", "My sister Ines is allergic to peanuts.")
				other.Scope, same.Conversation = userScope(2), "elsewhere"
				mustEnqueue(t, p.Pipeline, said("t1", "I live in Porto."), same, other)
				mustFlush(t, p.Pipeline)
				store.refusing(which)
				time.Sleep(10 * time.Minute) // audits are due
				if got := len(factsIn(t, store, testScope)); name != "records" && got > 0 {
					t.Fatalf("%s: %d facts: nothing was refused", name, got)
				}
				began := time.Now()
				erase := func(forget func(context.Context) (Erasure, error)) {
					t.Helper()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					if got, err := forget(ctx); err != nil || got.Memories == 0 {
						t.Errorf("%s: %+v, %v after %v", name, got, err, time.Since(began))
					}
				}
				erase(func(ctx context.Context) (Erasure, error) { return p.ForgetUser(ctx, userScope(2)) })
				if took := time.Since(began); took > time.Second {
					t.Errorf("%s: it took %v", name, took)
				}
				store.refusing(nil)
				time.Sleep(time.Minute)
				erase(func(ctx context.Context) (Erasure, error) {
					return p.ForgetConversation(ctx, testScope, same.Conversation)
				})
				if err := p.Settle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if left := everything(t, store, userScope(2)); len(left) > 0 {
					t.Errorf("%s: left %v", name, left)
				}
				if got := factsIn(t, store, testScope); len(got) != 1 || !strings.Contains(got[0], "Porto") {
					t.Errorf("%s: facts %v", name, got)
				}
				if m := p.Metrics().Audits; m.Made < 2 || m.Made > 3 || m.GivenUp > 0 || m.Shed > 0 {
					t.Errorf("%s: audits %+v", name, m)
				}
			})
		}
	}
}

// TestErasureWhileMarksWait: the mark of a stored turn that can't be written
// holds up no erasure either. The turn is audited, and the next one of its
// conversation marks it.
func TestErasureWhileMarksWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		p := start(t, New(DefaultConfig(), store, store, &indexed{}, newRedactor(t), nil, nil))
		defer p.stop()
		other := said("o1", "My bicycle is a green Peugeot.")
		other.Scope = userScope(2)
		p.settle(t, other)
		stored := store.count("Put")
		store.refusing(func(m string) bool { return m == "PutRecords" && store.count("Put") > stored })
		mustEnqueue(t, p.Pipeline, said("t1", "I live in Porto."))
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got, err := p.ForgetUser(ctx, userScope(2)); err != nil || got.Memories == 0 {
			t.Errorf("%+v, %v", got, err)
		}
		store.refusing(nil)
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := factsIn(t, store, testScope); len(got) != 1 {
			t.Errorf("facts %v", got)
		}
		if left := store.spooledRecords(t); left > 0 {
			t.Errorf("%d turns in the spool", left)
		}
		before := store.count("PutRecords")
		mustEnqueue(t, p.Pipeline, said("t2", "My sister is called Ines."))
		time.Sleep(time.Second)
		if got := store.count("PutRecords") - before; got != 2 { // its own, and the mark
			t.Errorf("the next turn led to %d writes of records, want 2", got)
		}
	})
}

// TestAuditsGoOnAfterAnOutage: what an auditor waited for a store counts for no
// work that it has to rest from.
func TestAuditsGoOnAfterAnOutage(t *testing.T) {
	audited(t, nil, func(t *testing.T, p running, store *faulty, index *indexed) {
		mustEnqueue(t, p.Pipeline, said("t1", "I live in Porto."))
		mustFlush(t, p.Pipeline)
		store.refusing(func(m string) bool { return strings.HasPrefix(m, "Put") })
		time.Sleep(5 * time.Hour)
		store.refusing(nil)
		time.Sleep(time.Minute)
		other := said("o1", "I live in Graz.")
		other.Scope = userScope(2)
		mustEnqueue(t, p.Pipeline, other)
		time.Sleep(5 * time.Minute)
		if got := factsIn(t, store, userScope(2)); len(got) != 1 {
			t.Errorf("facts %v", got)
		}
	})
}
