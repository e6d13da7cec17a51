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

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

func TestTurnBecomesMemories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, index := newFaulty(), &indexed{}
		p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
		turn := turnOf(testScope, "t1", "I am anna@example.org and I live in Porto", "Noted.")
		turn.Messages = append(turn.Messages, Message{Role: "tool", Text: "tool output"}, Message{Role: "system", Text: "prompt"})
		mustEnqueue(t, p.Pipeline, turn)
		mustFlush(t, p.Pipeline)

		want := []string{"I am [EMAIL] and I live in Porto", "Noted."}
		if diff := cmp.Diff(want, texts(t, store, testScope)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		if got := len(index.turns["t1"]); got != 2 {
			t.Errorf("indexed passages: got %d, want 2", got)
		}
		p.stop()
		if got := store.spooledRecords(t); got != 0 {
			t.Errorf("records left in the spool: %d", got)
		}
		s := p.Stats()
		if s.Enqueued != 1 || s.Persisted != 1 || s.Indexed != 1 || s.Memories != 2 || s.QueueTurns != 0 || s.QueueBytes != 0 || s.Lag != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestWhatIsNotStored(t *testing.T) {
	block := fence.Render("0123456789ab", []fence.Line{{ID: "m1", Text: "recalled before"}}, fence.Options{}).Text
	for _, c := range []struct {
		name, question, answer string
		want                   []string
		drop                   Drop
	}{
		{"recalled block", block + "\nWhat is my name?", "Ana", []string{"What is my name?", "Ana"}, -1},
		{"quoted block", "hi", "You sent:\n" + block, []string{"hi", "You sent:"}, -1},
		{"block that lost its opening tag", "hi", "You sent:\n" + block[strings.Index(block, "\n")+1:], []string{"hi", "You sent:"}, -1},
		{"only block", block, "", nil, DropEmpty},
		{"empty", " \n", "", nil, DropEmpty},
		{"only placeholders", "anna@example.org", "[EMAIL]", nil, DropRedactedAll},
		{"secret", "token = q7Zk2mXv9Lr4Tb8Nw3Hs6Jd1", "ok", []string{"token = [SECRET]", "ok"}, -1},
		{"not UTF-8", "a\xffb", "ok", []string{"a\ufffdb", "ok"}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
				mustEnqueue(t, p.Pipeline, turnOf(testScope, "t1", c.question, c.answer))
				mustFlush(t, p.Pipeline)
				if diff := cmp.Diff(c.want, texts(t, store, testScope)); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
				if s := p.Stats(); c.drop >= 0 && s.Dropped[c.drop] != 1 {
					t.Errorf("dropped as %v: got %v, want 1", c.drop, s.Dropped)
				}
			})
		})
	}
}

func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		cfg := DefaultConfig()
		pipe := New(cfg, store, store, nil, newRedactor(t), nil, nil)
		pipe.tuning.batchTurns = 10
		p := start(t, pipe)
		synctest.Wait()
		begun := time.Now()
		for i := range 10 {
			mustEnqueue(t, p.Pipeline, turnOf(userScope(i), fmt.Sprint("t", i), "question", "answer"))
		}
		time.Sleep(p.tuning.commitInterval - time.Microsecond)
		synctest.Wait()
		if got := store.commits(); got != 0 {
			t.Fatalf("commits before the interval: %d", got)
		}
		time.Sleep(time.Microsecond)
		synctest.Wait()
		if got := store.commits(); got != 1 || len(store.spool[0]) != 10 {
			t.Fatalf("commits after the interval: %d, want 1 with all 10 turns", got)
		}
		// ten turns are a batch for the store: no more waiting
		if got := p.Stats().Indexed; got != 10 {
			t.Errorf("searchable after %v: %d, want 10", time.Since(begun), got)
		}

		// a full group does not wait at all
		begun = time.Now()
		for i := range p.tuning.commitTurns {
			mustEnqueue(t, p.Pipeline, turnOf(userScope(i), fmt.Sprint("u", i), "question", "answer"))
		}
		synctest.Wait()
		if got := p.Stats().Persisted; got != uint64(10+p.tuning.commitTurns) || time.Since(begun) != 0 {
			t.Errorf("persisted %d after %v", got, time.Since(begun))
		}
		if got := store.commits(); got != 2 {
			t.Errorf("commits: got %d, want 2", got)
		}

		// a single turn is searchable after both intervals
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "v", "question", "answer"))
		time.Sleep(p.tuning.commitInterval + p.tuning.batchInterval - time.Microsecond)
		synctest.Wait()
		if got := texts(t, store, testScope); len(got) != 0 {
			t.Errorf("stored before the batch interval: %v", got)
		}
		time.Sleep(time.Microsecond)
		synctest.Wait()
		if got := texts(t, store, testScope); len(got) != 2 {
			t.Errorf("stored after the batch interval: %v", got)
		}
	})
}

func TestQueueLimits(t *testing.T) {
	store := newFaulty()
	cfg := DefaultConfig()
	cfg.QueueTurns, cfg.TurnsPerSecond = 3, 0
	p := New(cfg, store, store, nil, nil, nil, nil) // nothing runs: nothing leaves
	for i := range 3 {
		mustEnqueue(t, p, turnOf(testScope, fmt.Sprint(i), "q", "a"))
	}
	if err := p.Enqueue(turnOf(testScope, "3", "q", "a")); !errors.Is(err, ErrFull) {
		t.Errorf("fourth turn: got %v, want ErrFull", err)
	}

	cfg = DefaultConfig()
	cfg.QueueBytes, cfg.TurnsPerSecond = 1<<20, 0
	p = New(cfg, store, store, nil, nil, nil, nil)
	taken := 0
	for i := range 100 {
		if p.Enqueue(turnOf(testScope, fmt.Sprint(i), strings.Repeat("x", 100_000), "")) == nil {
			taken++
		}
	}
	s := p.Stats()
	if taken != 10 || s.QueueBytes > cfg.QueueBytes || s.Dropped[DropFull] != 90 {
		t.Errorf("taken %d, bytes %d, dropped %v", taken, s.QueueBytes, s.Dropped)
	}
}

func TestEnqueueRefuses(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, turn := range map[string]Turn{
		"no scope":          turnOf(storage.Scope{Tenant: "t"}, "t1", "q", "a"),
		"no id":             turnOf(testScope, "", "q", "a"),
		"long id":           turnOf(testScope, long, "q", "a"),
		"long conversation": {ID: "t1", Scope: testScope, Conversation: long, Messages: []Message{{}}},
		"no messages":       {ID: "t1", Scope: testScope},
	} {
		p := New(DefaultConfig(), nil, nil, nil, nil, nil, nil)
		if err := p.Enqueue(turn); !errors.Is(err, storage.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
		if got := p.Stats().Dropped[DropInvalid]; got != 1 {
			t.Errorf("%s: counted %d", name, got)
		}
	}
}

func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(DefaultConfig(), nil, nil, nil, nil, nil, nil)
		burst := func(scope storage.Scope) int {
			n := 0
			for i := range 300 {
				if p.Enqueue(turnOf(scope, fmt.Sprint(i), "q", "a")) == nil {
					n++
				}
			}
			return n
		}
		if got := burst(userScope(1)); got != 100 {
			t.Errorf("burst of the first user: got %d, want 100", got)
		}
		if got := burst(userScope(2)); got != 100 {
			t.Errorf("burst of the second user: got %d, want 100", got)
		}
		time.Sleep(500 * time.Millisecond)
		if got := burst(userScope(1)); got != 50 {
			t.Errorf("after half a second: got %d, want 50", got)
		}
		time.Sleep(time.Hour)
		if got := burst(userScope(1)); got != 100 {
			t.Errorf("after an hour: got %d, want 100", got)
		}
		if got := p.Stats().Dropped[DropRateLimited]; got != 200+200+250+200 {
			t.Errorf("counted %d", got)
		}
	})
}

func TestLimiterIsBounded(t *testing.T) {
	l := limiter{rate: 1}
	now := time.Now()
	for i := range 5 * maxBuckets {
		if !l.allow(userScope(i), now) {
			t.Fatalf("user %d refused", i)
		}
	}
	if got := len(l.young) + len(l.old); got > 2*maxBuckets {
		t.Errorf("buckets: %d", got)
	}
	if l.allow(userScope(5*maxBuckets-1), now) {
		t.Error("the last user has a second token")
	}
}

func TestReplayAndRegeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, index := newFaulty(), &indexed{}
		p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
		first := turnOf(testScope, "t1", "question", strings.Repeat("a long answer. ", 200))
		mustEnqueue(t, p.Pipeline, first)
		mustFlush(t, p.Pipeline)
		before, err := store.Memory(t.Context(), testScope, "t1.0")
		if err != nil {
			t.Fatal(err)
		}

		time.Sleep(time.Minute) // the replay carries another time
		mustEnqueue(t, p.Pipeline, first)
		mustFlush(t, p.Pipeline)
		after, err := store.Memory(t.Context(), testScope, "t1.0")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the replay changed the memory (-before +after):\n%s", diff)
		}
		if s := p.Stats(); s.Duplicates != 1 || s.Indexed != 1 || len(store.put) != 1 {
			t.Errorf("after the replay: %+v, %d writes", s, len(store.put))
		}

		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t1", "question", "a short answer"))
		mustFlush(t, p.Pipeline)
		if diff := cmp.Diff([]string{"question", "a short answer"}, texts(t, store, testScope)); diff != "" {
			t.Errorf("after regeneration (-want +got):\n%s", diff)
		}
		if s := p.Stats(); s.Replaced != 1 || len(index.turns["t1"]) != 2 {
			t.Errorf("after regeneration: %+v, index has %d", s, len(index.turns["t1"]))
		}

		// in one batch the last wins
		time.Sleep(time.Second)
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t2", "q", "one"), turnOf(testScope, "t2", "q", "two"), turnOf(testScope, "t2", "q", "two"))
		mustFlush(t, p.Pipeline)
		if diff := cmp.Diff([]string{"question", "a short answer", "q", "two"}, texts(t, store, testScope)); diff != "" {
			t.Errorf("after one batch (-want +got):\n%s", diff)
		}
		if s := p.Stats(); s.Duplicates != 2 || s.Replaced != 2 {
			t.Errorf("after one batch: %+v", s)
		}
	})
}

func TestUnavailableStoreIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		store.Fail(true)
		cfg := DefaultConfig()
		cfg.QueueTurns, cfg.TurnsPerSecond = 50, 0
		p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
		refused := 0
		for i := range 80 {
			if p.Enqueue(turnOf(testScope, fmt.Sprintf("t%02d", i), fmt.Sprintf("q%02d", i), "")) != nil {
				refused++
			}
			time.Sleep(time.Second)
		}
		if refused != 30 {
			t.Errorf("refused: got %d, want 30", refused)
		}
		// 0.1 s doubling to 5 s: 6 tries in the first 3.1 s, then one in 5 s
		if got := store.count("AllRecords"); got < 15 || got > 25 {
			t.Errorf("tries in 80 s: got %d", got)
		}
		store.Fail(false)
		time.Sleep(maxBackoff + time.Second)
		if s := p.Stats(); s.Indexed != 50 || s.QueueTurns != 0 {
			t.Errorf("after the store is back: %+v", s)
		}
		if got := texts(t, store, testScope); got[0] != "q00" || got[49] != "q49" {
			t.Errorf("order: %v", got)
		}

		store.Fail(true) // it may go again
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "later", "later", ""))
		time.Sleep(time.Minute)
		if got := p.Stats().QueueTurns; got != 1 {
			t.Errorf("waiting: got %d, want 1", got)
		}
		store.Fail(false)
		time.Sleep(maxBackoff + time.Second)
		if got := p.Stats().Indexed; got != 51 {
			t.Errorf("indexed: got %d, want 51", got)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
		synctest.Wait()
		for i := range 100 {
			mustEnqueue(t, p.Pipeline, turnOf(userScope(i), "t", "q", "a"))
		}
		begun := time.Now()
		p.stop()
		if took := time.Since(begun); took != 0 {
			t.Errorf("drain waited for %v", took)
		}
		if s := p.Stats(); s.Indexed != 100 || s.QueueTurns != 0 {
			t.Errorf("after the drain: %+v", s)
		}
		if err := p.Enqueue(turnOf(testScope, "t", "q", "a")); !errors.Is(err, ErrClosed) {
			t.Errorf("Enqueue after the end: got %v, want ErrClosed", err)
		}
	})
}

func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		cfg := DefaultConfig()
		p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
		synctest.Wait()
		store.Fail(true)
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t", "q", "a"))
		begun := time.Now()
		p.stop()
		if took := time.Since(begun); took != cfg.DrainTimeout {
			t.Errorf("Run took %v more, want %v", took, cfg.DrainTimeout)
		}
		if s := p.Stats(); s.Dropped[DropStopped] != 1 {
			t.Errorf("dropped: %v", s.Dropped)
		}
	})
}

// TestDrainReportsWhatIsLeft checks that turns which are durable, but not
// stored by the end, are reported and not counted as dropped.
func TestDrainReportsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		store.fault = func(method string, _ int) (error, bool) {
			if method == "Put" {
				return storage.ErrUnavailable, false
			}
			return nil, false
		}
		p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
		synctest.Wait()
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t", "q", "a"))
		p.stop()
		if s := p.Stats(); s.Persisted != 1 || s.Indexed != 0 || s.QueueTurns != 1 || len(s.Dropped) != 0 {
			t.Errorf("at the end: %+v, want one that is persisted and left", s)
		}
	})
}

// TestDrainWithoutStore checks that Run does not wait for a store that never
// came if there is nothing to bring to it.
func TestDrainWithoutStore(t *testing.T) {
	for _, taken := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			store := newFaulty()
			store.Fail(true)
			cfg := DefaultConfig()
			p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
			time.Sleep(time.Minute)
			for range taken {
				mustEnqueue(t, p.Pipeline, turnOf(testScope, "t", "q", "a"))
			}
			begun := time.Now()
			p.stop()
			took := time.Since(begun)
			if want := time.Duration(taken) * cfg.DrainTimeout; took < want || took > want+firstBackoff {
				t.Errorf("with %d turns taken: Run took %v more, want %v", taken, took, want)
			}
			if s := p.Stats(); s.Dropped[DropStopped] != uint64(taken) {
				t.Errorf("dropped: %v, want %d", s.Dropped, taken)
			}
		})
	}
}

func TestFlushEndsWithContextAndRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		store.Fail(true)
		p := start(t, New(DefaultConfig(), store, store, nil, nil, nil, nil))
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t", "q", "a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: got %v, want DeadlineExceeded", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- p.Flush(context.Background()) }()
		synctest.Wait()
		p.stop()
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("Flush when Run ended: got %v, want ErrClosed", err)
		}
	})
}

func TestConfigValidateNamesEveryProblem(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	err := Config{TurnsPerSecond: -1}.Validate()
	for _, field := range []string{"queueTurns", "queueBytes", "turnsPerSecond", "maxMessageBytes", "retention"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+field+": must be ") {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
}
