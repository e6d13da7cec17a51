package recall

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// A request returns in time even if its scope's lock is held.
func TestRecallWaitsForLocksWithinItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		e := New(cfg, &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("I live in Graz.")}}, nil, nil)
		defer e.Close()
		ask := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			_, err := e.Recall(ctx, Request{Scope: alice, Newest: "Where do I live?"})
			return time.Since(began), err
		}
		fresh := e.cache.slot(alice)
		fresh.mu.Lock()
		if took, err := ask(t.Context()); !errors.Is(err, ErrTimeout) || took != cfg.FirstDeadline {
			t.Errorf("first: %v after %v, want a timeout after %v", err, took, cfg.FirstDeadline)
		}
		fresh.mu.Unlock()
		if _, err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := resting(t, e)
		s.mu.Lock()
		if took, err := ask(t.Context()); !errors.Is(err, ErrTimeout) || took != cfg.Deadline {
			t.Errorf("warm: %v after %v, want a timeout after %v", err, took, cfg.Deadline)
		}
		short, cancel := context.WithTimeout(t.Context(), cfg.Deadline/2)
		defer cancel()
		if took, err := ask(short); !errors.Is(err, context.DeadlineExceeded) || took != cfg.Deadline/2 {
			t.Errorf("a deadline of the context: %v after %v, want %v", err, took, cfg.Deadline/2)
		}
		time.AfterFunc(cfg.Deadline/2, s.mu.Unlock)
		if took, err := ask(t.Context()); err != nil || took < cfg.Deadline/2 || took > cfg.Deadline/2+maxLockWait {
			t.Errorf("lock released in time: %v after %v", err, took)
		}
	})
}
