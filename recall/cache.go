package recall

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// scopeCache holds the slots of all scopes and keeps their size within
// Config.MaxBytes by evicting the least recently used.
type scopeCache struct {
	cfg     *Config
	slots   sync.Map     // storage.Scope -> *slot
	bytes   atomic.Int64 // of all slots, and of evicted indexes that are not written yet
	clock   atomic.Int64 // counts uses
	evicted atomic.Int64 // slots

	evicting sync.Mutex    // one eviction at a time
	onEvict  func(s *slot) // called with the slot's lock held; nil: nothing is to be done
}

// slot returns the scope's slot, which it creates if there is none.
func (c *scopeCache) slot(scope storage.Scope) *slot {
	if s, ok := c.find(scope); ok {
		return s
	}
	created := &slot{scope: scope}
	created.used.Store(c.clock.Add(1))
	v, loaded := c.slots.LoadOrStore(scope, created)
	if !loaded {
		c.count(created, slotOverhead)
	}
	return v.(*slot)
}

// find returns the scope's slot, if there is one.
func (c *scopeCache) find(scope storage.Scope) (*slot, bool) {
	v, ok := c.slots.Load(scope)
	if !ok {
		return nil, false
	}
	return v.(*slot), true
}

// each calls f for every slot.
func (c *scopeCache) each(f func(s *slot)) {
	c.slots.Range(func(_, v any) bool {
		f(v.(*slot))
		return true
	})
}

// touch notes that a slot is used.
func (c *scopeCache) touch(s *slot) { s.used.Store(c.clock.Add(1)) }

// countIndex counts the present size of a slot's index. The caller holds the
// slot's lock.
func (c *scopeCache) countIndex(s *slot) { c.count(s, s.ix.bytes()+slotOverhead) }

// count sets the size of a slot, to which it adds that of its vectors, and
// evicts others if the cache is too large.
func (c *scopeCache) count(s *slot, bytes int64) {
	bytes += s.vec.bytes.Load()
	c.bytes.Add(bytes - s.counted.Swap(bytes))
	if c.bytes.Load() > c.cfg.MaxBytes {
		c.shrink(s)
	}
}

func (c *scopeCache) uncount(s *slot) { c.bytes.Add(-s.counted.Swap(0)) }

// shrink evicts the least recently used slots until the cache is at nine tenths
// of its limit. It spares keep, and slots that are loading or in use, so the
// limit may be exceeded until their loads end.
func (c *scopeCache) shrink(keep *slot) {
	if !c.evicting.TryLock() {
		return
	}
	defer c.evicting.Unlock()
	type candidate struct {
		s    *slot
		used int64
	}
	var all []candidate
	c.each(func(s *slot) {
		if s != keep {
			all = append(all, candidate{s, s.used.Load()})
		}
	})
	slices.SortFunc(all, func(a, b candidate) int { return int(a.used - b.used) })
	for _, oldest := range all {
		if c.bytes.Load() <= c.cfg.MaxBytes*9/10 {
			return
		}
		s := oldest.s
		if !s.mu.TryLock() { // in use
			continue
		}
		if s.loading == nil && !s.dropped {
			if c.onEvict != nil {
				c.onEvict(s)
			}
			c.evict(s)
		}
		s.mu.Unlock()
	}
}

// evict drops a slot; the next request loads its scope again. The caller holds
// the slot's lock.
func (c *scopeCache) evict(s *slot) {
	s.drop()
	c.slots.CompareAndDelete(s.scope, s)
	c.uncount(s)
	c.evicted.Add(1)
}

// drop drops the scope's slot and cancels its load.
func (c *scopeCache) drop(scope storage.Scope) {
	v, ok := c.slots.LoadAndDelete(scope)
	if !ok {
		return
	}
	s := v.(*slot)
	s.mu.Lock()
	s.drop()
	if s.cancelLoad != nil {
		s.cancelLoad()
	}
	s.mu.Unlock()
	c.uncount(s)
}

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
	loadBegan    atomic.Int64  // when loading began, in ns since 1970; 0 = not loading
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
