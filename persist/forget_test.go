package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// droppingIndex is an Indexer that can forget scopes.
type droppingIndex struct {
	indexed
	dropped []storage.Scope
	forgot  []string
}

func (x *droppingIndex) Drop(s storage.Scope) { x.dropped = append(x.dropped, s) }
func (x *droppingIndex) Forget(_ storage.Scope, ids ...string) {
	x.forgot = append(x.forgot, ids...)
}

// allOf returns all that a store has of a scope, records included.
func allOf(t *testing.T, store *faulty, scope storage.Scope) []string {
	t.Helper()
	out := texts(t, store, scope)
	for _, b := range storage.Buckets() {
		page, err := store.Records(t.Context(), b, scope, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			out = append(out, string(b)+" "+r.Key)
		}
	}
	return out
}

// TestForgetUser erases a user whose turns are in every place at once: queued,
// spooled, stored, waiting for an audit, audited, named in a request.
func TestForgetUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, index := newFaulty(), &droppingIndex{}
		p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
		other := userTurn("o1", "I live in Graz.")
		other.Scope = userScope(2)
		p.settle(t, userTurn("t1", "I'm allergic to peanuts. Please forget my old address."), other)
		mustEnqueue(t, p.Pipeline, userTurn("t2", "I live in Porto."))
		mustFlush(t, p.Pipeline) // not audited yet
		mustEnqueue(t, p.Pipeline, userTurn("t3", "I have two cats."))
		time.Sleep(defaultTuning.commitInterval) // spooled
		synctest.Wait()
		mustEnqueue(t, p.Pipeline, userTurn("t4", "I have a dog.")) // queued
		theirs := allOf(t, store, userScope(2))

		got, err := p.ForgetUser(t.Context(), testScope)
		if err != nil {
			t.Fatal(err)
		}
		if got.Queued != 1 || got.Spooled != 1 || got.Memories != 5 || got.Records[storage.BucketAudit] != 2 || got.Records[storage.BucketSummary] != 1 || got.At == 0 {
			t.Errorf("receipt: %+v", got)
		}
		if diff := cmp.Diff([]storage.Scope{testScope}, index.dropped); diff != "" {
			t.Errorf("index told (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour) // all audits would have been due
		mustFlush(t, p.Pipeline)
		if left := allOf(t, store, testScope); len(left) > 0 {
			t.Errorf("came back: %v", left)
		}
		if diff := cmp.Diff(theirs[:2], allOf(t, store, userScope(2))[:2]); diff != "" {
			t.Errorf("another user's (-want +got):\n%s", diff)
		}
		if s := p.Stats(); s.Dropped[DropErased] != 2 || s.QueueTurns != 0 || s.QueueBytes != 0 {
			t.Errorf("stats: %+v", s)
		}
		p.stop()
		p = start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
		time.Sleep(time.Hour)
		synctest.Wait()
		if left := allOf(t, store, testScope); len(left) > 0 {
			t.Errorf("came back after a restart: %v", left)
		}
		p.stop()
	})
}

func TestForgetConversation(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		stays := userTurn("t2", "I live in Porto.")
		stays.Conversation = "c2"
		p.settle(t, userTurn("t1", "I'm allergic to peanuts."), stays)
		mustEnqueue(t, p.Pipeline, userTurn("t3", "I have two cats."))
		got, err := p.ForgetConversation(t.Context(), testScope, "c1")
		if err != nil {
			t.Fatal(err)
		}
		if got.Queued != 1 || got.Memories != 3 || got.Derived != 1 || got.Records[storage.BucketAudit] != 1 || got.Records[storage.BucketSummary] != 1 {
			t.Errorf("receipt: %+v", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, s := range texts(t, store, testScope) {
			if strings.Contains(s, "peanut") || strings.Contains(s, "cats") {
				t.Errorf("came back: %s", s)
			}
		}
		if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, []string{`"I live in Porto."`}) {
			t.Errorf("the other conversation's facts: %v", got)
		}
	})
}

func TestForgetMemories(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, userTurn("t1", "I'm allergic to peanuts."), userTurn("t2", "I live in Porto."))
		mustEnqueue(t, p.Pipeline, userTurn("t3", "I have two cats."))
		mustFlush(t, p.Pipeline)
		got, err := p.ForgetMemories(t.Context(), testScope, "t1.0", "t3.0")
		if err != nil || got.Memories != 3 || got.Derived != 1 {
			t.Errorf("receipt: %+v, %v", got, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, []string{`"I live in Porto."`}) {
			t.Errorf("facts: %v", got)
		}
		if _, err := p.ForgetMemories(t.Context(), userScope(2), "t2.0"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("another user's id: got %v, want ErrNotFound", err)
		}
	})
}

func TestForgetWaitsForStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
		store.Fail(true)
		mustEnqueue(t, p.Pipeline, userTurn("t1", "I live in Porto."))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p.ForgetUser(ctx, testScope); err == nil {
			t.Error("an erasure without a store: no error")
		}
		store.Fail(false)
		mustFlush(t, p.Pipeline) // the stages are not stuck
		if _, err := p.ForgetUser(t.Context(), testScope); err != nil {
			t.Error(err)
		}
		p.stop()
	})
}

// TestForgetRace erases while turns of the user come in. What was handed in
// before the last erasure began is gone.
func TestForgetRace(t *testing.T) {
	store := newFaulty()
	cfg := DefaultConfig()
	cfg.TurnsPerSecond = 0
	pipe := New(cfg, store, store, nil, newRedactor(t), nil, nil)
	pipe.tuning.commitInterval, pipe.tuning.batchInterval = 0, 0
	p := start(t, pipe)
	var pour sync.WaitGroup
	for w := range 4 {
		pour.Go(func() {
			for i := range 200 {
				turn := userTurn(fmt.Sprintf("t%d.%d", w, i), fmt.Sprintf("I have %d cats.", i+2))
				turn.Conversation = fmt.Sprint("c", i%5)
				_ = p.Enqueue(turn)
			}
		})
	}
	for range 20 {
		if _, err := p.ForgetUser(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
	}
	pour.Wait()
	if _, err := p.ForgetUser(t.Context(), testScope); err != nil {
		t.Fatal(err)
	}
	if err := p.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := allOf(t, store, testScope); len(left) > 0 {
		t.Errorf("came back: %d, first %s", len(left), left[0])
	}
}

// TestForgetWaitsForWrites erases while a stage is writing for that user: the
// spooler, the storer and the auditor in turn.
func TestForgetWaitsForWrites(t *testing.T) {
	for _, slow := range []string{"PutRecords", "Put"} {
		for nth := 1; nth <= 2; nth++ { // the second ones are the auditor's
			t.Run(fmt.Sprint(slow, nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newFaulty()
					var began atomic.Bool
					store.setFault(func(method string, n int) (error, bool) {
						if method == slow && n == nth {
							began.Store(true)
							time.Sleep(time.Minute)
						}
						return nil, false
					})
					p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
					mustEnqueue(t, p.Pipeline, userTurn("t1", "Remember that I live in Porto."))
					time.Sleep(10 * time.Second)
					synctest.Wait()
					if !began.Load() {
						t.Fatal("no such write")
					}
					if _, err := p.ForgetUser(t.Context(), testScope); err != nil {
						t.Fatal(err)
					}
					store.clearFault()
					time.Sleep(time.Hour)
					synctest.Wait()
					if left := allOf(t, store, testScope); len(left) > 0 {
						t.Errorf("came back: %v", left)
					}
					p.stop()
				})
			})
		}
	}
}

// pausableIndex is an Indexer that writes records.
type pausableIndex struct {
	droppingIndex
	store *faulty
	calls []string
	err   error
}

func (x *pausableIndex) left() string {
	page, err := x.store.Scan(context.Background(), testScope, storage.Query{})
	return fmt.Sprintf("%d memories, %v", len(page.Memories), err)
}

func (x *pausableIndex) Forget(storage.Scope, ...string) {
	x.calls = append(x.calls, "forget: "+x.left())
}

func (x *pausableIndex) Drop(s storage.Scope) { x.calls = append(x.calls, "drop: "+x.left()) }

func (x *pausableIndex) PauseWrites(context.Context, storage.Scope) (func(), error) {
	x.calls = append(x.calls, "hold: "+x.left())
	return func() { x.calls = append(x.calls, "release: "+x.left()) }, x.err
}

// TestForgetMemoriesPausesIndexWrites checks the same for memories and
// conversations.
func TestForgetMemoriesPausesIndexWrites(t *testing.T) {
	for name, forget := range map[string]func(ctx context.Context, p running) error{
		"a memory": func(ctx context.Context, p running) error {
			_, err := p.ForgetMemories(ctx, testScope, "t1.0", "t1.1")
			return err
		},
		"a conversation": func(ctx context.Context, p running) error {
			_, err := p.ForgetConversation(ctx, testScope, "c1")
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newFaulty()
			index := &pausableIndex{store: store}
			p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
			p.settle(t, userTurn("t1", "I live in Porto."))
			index.err = context.DeadlineExceeded
			if err := forget(t.Context(), p); !errors.Is(err, context.DeadlineExceeded) || index.left() != "3 memories, <nil>" {
				t.Errorf("%s, of an index whose writes can't be paused: %v, %s", name, err, index.left())
			}
			index.calls, index.err = nil, nil
			if err := forget(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			want := []string{"hold: 3 memories, <nil>", "forget: 0 memories, <nil>", "release: 0 memories, <nil>"}
			if diff := cmp.Diff(want, index.calls); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", name, diff)
			}
			p.stop()
		})
	}
}

// TestForgetUserPausesIndexWrites checks that the index writes nothing from
// before the erasure until it has dropped the scope.
func TestForgetUserPausesIndexWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		index := &pausableIndex{store: store}
		p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
		p.settle(t, userTurn("t1", "I live in Porto."))
		if _, err := p.ForgetUser(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
		want := []string{"hold: 3 memories, <nil>", "drop: 0 memories, <nil>", "release: 0 memories, <nil>"}
		if diff := cmp.Diff(want, index.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		p.settle(t, userTurn("t2", "I live in Graz."))
		index.err = context.DeadlineExceeded
		if _, err := p.ForgetUser(t.Context(), testScope); !errors.Is(err, context.DeadlineExceeded) || len(factsOf(t, store, testScope)) != 1 {
			t.Errorf("an index whose writes can't be paused: %v, facts %v", err, current(factsOf(t, store, testScope)))
		}
		p.stop()
	})
}

// keyless is a store that has lost the key of a scope, which can then be erased
// but not read.
type keyless struct {
	*faulty
	lost storage.Scope
}

func (k *keyless) Records(ctx context.Context, b storage.Bucket, scope storage.Scope, after string, limit int) (storage.RecordPage, error) {
	if scope == k.lost {
		return storage.RecordPage{}, fmt.Errorf("key missing: %w", storage.ErrDamaged)
	}
	return k.faulty.Records(ctx, b, scope, after, limit)
}

func (k *keyless) Erase(ctx context.Context, scope storage.Scope) (storage.Receipt, error) {
	if scope == k.lost {
		k.lost = storage.Scope{}
	}
	return k.faulty.Erase(ctx, scope)
}

// TestForgetUserWithoutKey erases a user whose key is lost, which is how to
// start over.
func TestForgetUserWithoutKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &keyless{faulty: newFaulty()}
		p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
		p.settle(t, userTurn("t1", "I'm allergic to peanuts."))
		store.lost = testScope
		got, err := p.ForgetUser(t.Context(), testScope)
		if err != nil || got.Memories == 0 {
			t.Errorf("receipt: %+v, %v", got, err)
		}
		if left := allOf(t, store.faulty, testScope); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}
