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

// refuseWhere makes the store fail the calls that which selects, like a full
// disk, until it is called with nil.
func (f *faulty) refuseWhere(which func(method string) bool) {
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

// factsIn returns the texts of a scope's facts.
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

// TestErasureWhileAuditsWait checks that audits that can't be stored do not
// delay an erasure, whatever part of them fails. The rest is audited once there
// is space again; what was forgotten is not.
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
				other, same := userTurn("o1", "I live in Graz."), userTurn("t2", "My sister Ines is allergic to peanuts.")
				other.Scope, same.Conversation = userScope(2), "elsewhere"
				mustEnqueue(t, p.Pipeline, userTurn("t1", "I live in Porto."), same, other)
				mustFlush(t, p.Pipeline)
				store.refuseWhere(which)
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
				store.refuseWhere(nil)
				time.Sleep(time.Minute)
				erase(func(ctx context.Context) (Erasure, error) {
					return p.ForgetConversation(ctx, testScope, same.Conversation)
				})
				if err := p.Settle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if left := allOf(t, store, userScope(2)); len(left) > 0 {
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

// TestErasureWhileMarksWait checks that a mark that can't be written does not
// delay an erasure either. The turn is audited, and the next one of its
// conversation writes the mark.
func TestErasureWhileMarksWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		p := start(t, New(DefaultConfig(), store, store, &indexed{}, newRedactor(t), nil, nil))
		defer p.stop()
		other := userTurn("o1", "My bicycle is a green Peugeot.")
		other.Scope = userScope(2)
		p.settle(t, other)
		stored := store.count("Put")
		store.refuseWhere(func(m string) bool { return m == "PutRecords" && store.count("Put") > stored })
		mustEnqueue(t, p.Pipeline, userTurn("t1", "I live in Porto."))
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got, err := p.ForgetUser(ctx, userScope(2)); err != nil || got.Memories == 0 {
			t.Errorf("%+v, %v", got, err)
		}
		store.refuseWhere(nil)
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
		mustEnqueue(t, p.Pipeline, userTurn("t2", "My sister is called Ines."))
		time.Sleep(time.Second)
		if got := store.count("PutRecords") - before; got != 2 { // its own, and the mark
			t.Errorf("the next turn led to %d writes of records, want 2", got)
		}
	})
}

// TestAuditsResumeAfterOutage checks that waiting for a store does not count as
// work to rest from.
func TestAuditsResumeAfterOutage(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, index *indexed) {
		mustEnqueue(t, p.Pipeline, userTurn("t1", "I live in Porto."))
		mustFlush(t, p.Pipeline)
		store.refuseWhere(func(m string) bool { return strings.HasPrefix(m, "Put") })
		time.Sleep(5 * time.Hour)
		store.refuseWhere(nil)
		time.Sleep(time.Minute)
		other := userTurn("o1", "I live in Graz.")
		other.Scope = userScope(2)
		mustEnqueue(t, p.Pipeline, other)
		time.Sleep(5 * time.Minute)
		if got := factsIn(t, store, userScope(2)); len(got) != 1 {
			t.Errorf("facts %v", got)
		}
	})
}
