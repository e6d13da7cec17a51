package recall

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// slot is one scope in the engine. It is empty, loading, loaded, or its load
// has failed and may be retried.
//
// Memories may arrive while the scope loads. They have been written to the
// store before, so either the scan returns them or they arrive after it began
// and wait in pending. A memory that comes both ways replaces itself.
type slot struct {
	scope   storage.Scope
	used    atomic.Int64 // the cache's clock at the last use
	ready   atomic.Bool  // ix is loaded
	counted atomic.Int64 // bytes counted in the cache
	vec     scopeVectors

	mu           sync.RWMutex  // guards the fields below; a search holds it for reading
	ix           *index        // nil unless loaded
	loading      chan struct{} // closed when the load ends; nil if none is running
	cancelLoad   context.CancelFunc
	pending      []change
	rebuild      *rebuild  // waiting or running; nil if there is none
	rebuildAfter time.Time // no rebuild starts before
	err          error     // of the last load
	retryAfter   time.Time // no load starts before, if err is set
	saved        snapshotState
	dropped      bool // or evicted: a load's result is discarded
}

// slotOverhead is counted for every slot, in bytes.
const slotOverhead = 2 << 10

var errDropped = errors.New("scope dropped")

// change makes a change in the index and in the tally. The caller holds the
// lock.
func (s *slot) change(c change) {
	if s.saved.tally != nil {
		s.saved.tally.apply(s.ix, &c)
		s.saved.touch(c.size())
	}
	s.ix.apply(c)
}

// wait blocks until the running load, if any, has ended. It returns the error
// of the last load.
func (s *slot) wait(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	if err := s.rlock(ctx); err != nil {
		return err
	}
	loading := s.loading
	s.mu.RUnlock()
	if loading != nil {
		select {
		case <-loading:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := s.rlock(ctx); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	if s.dropped {
		return nil // the caller finds no index and tries again
	}
	return s.err
}

// drop empties the slot permanently and cancels its rebuild. The caller holds
// the lock.
func (s *slot) drop() {
	s.dropped, s.ix = true, nil
	s.cancelRebuild()
	s.ready.Store(false)
}

// How long a request waits before it tries a lock again.
const (
	minLockWait = 20 * time.Microsecond
	maxLockWait = time.Millisecond
)

// rlock takes the lock for reading. It fails with the cause of ctx if ctx is
// done first, so that a request never waits for a lock beyond its deadline.
func (s *slot) rlock(ctx context.Context) error { return pollLock(ctx, s.mu.TryRLock) }

// lock is rlock for writing.
func (s *slot) lock(ctx context.Context) error { return pollLock(ctx, s.mu.TryLock) }

// pollLock calls try until it succeeds, with increasing waits.
func pollLock(ctx context.Context, try func() bool) error {
	if try() {
		return nil
	}
	wait := minLockWait
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if try() {
			return nil
		}
		wait = min(2*wait, maxLockWait)
		timer.Reset(wait)
	}
}
