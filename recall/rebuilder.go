package recall

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/background"
)

// rebuilder rebuilds indexes that waste memory or exceed Config.MaxScopeBytes.
// An index of at most maxInlineRebuild memories is rebuilt within the change
// that made it necessary. A larger one takes seconds and is rebuilt in the
// background, from a copy that shares the parts that are only appended to:
//
//  1. begin takes the copy under the slot's read lock. From then on changes are
//     made in the old index, which still answers, and recorded.
//  2. fitted builds the new index without a lock and yields to requests.
//  3. swap makes the recorded changes in the new index, most of them without a
//     lock, and replaces the old index. Since the order is kept, a memory that
//     was forgotten meanwhile is in neither.
//
// A slot that is dropped or evicted meanwhile cancels its rebuild, and so does
// a slot with too many recorded changes; its next change starts another. One
// rebuild runs at a time, the others wait. An index that has outgrown its limit
// twofold meanwhile, and by minOutgrown, is evicted and loaded again.
type rebuilder struct {
	cfg     *Config
	log     *slog.Logger
	tasks   *tasks
	cache   *scopeCache
	vectors *vectorKeeper

	running    chan struct{} // holds one element while a rebuild runs
	failed     atomic.Int64
	omitted    atomic.Int64 // memories
	omittedLog logLimit
}

const (
	// maxInlineRebuild memories take about five milliseconds.
	maxInlineRebuild = 512
	// changesShare is the share of Config.MaxScopeBytes, one in so many, that
	// recorded changes may take.
	changesShare = 4
	// maxLockedChanges is how many changes are made under the slot's lock. If
	// there are more, they are first made without it, for maxSwapRounds rounds.
	maxLockedChanges = 64
	maxSwapRounds    = 8
	minOutgrown      = 16 << 20
	// rebuildPause follows a rebuild that panicked.
	rebuildPause = time.Minute
	// omittedLogInterval is the shortest time between two warnings of omitted
	// memories. An index at its limit omits some every few turns.
	omittedLogInterval = time.Hour
)

// rebuild is a rebuild that waits or runs. The slot's lock guards it.
type rebuild struct {
	cancelled atomic.Bool
	begun     bool
	changes   []change // recorded and not yet made in the new index
	bytes     int64    // estimated size of changes

	reserved int64 // bytes counted for the new index; owned by the rebuild's goroutine
}

// record records a change if the rebuild has begun. The caller holds the slot's
// lock. r may be nil.
func (r *rebuild) record(c *change) {
	if r == nil || !r.begun {
		return
	}
	r.changes = append(r.changes, *c)
	r.bytes += c.bytes()
}

// cancelRebuild cancels the slot's rebuild, if there is one. The caller holds
// the lock.
func (s *slot) cancelRebuild() {
	if s.rebuild != nil {
		s.rebuild.cancelled.Store(true)
		s.rebuild = nil
	}
}

// fit returns ix, or a rebuilt copy if ix wastes memory or exceeds its limit.
func (b *rebuilder) fit(ix *index) *index {
	if ix.later && ix.bytes() > b.cfg.MaxScopeBytes { // coding its texts may make it fit
		ix.learnOfEnough()
		ix.work = nil
	}
	out := compactor{ix}.fitted(b.cfg.MaxScopeBytes, nil)
	b.countOmitted(out.omitted - ix.omitted)
	return out
}

// refit rebuilds the slot's index if necessary, now if that is quick, otherwise
// in the background. It evicts a slot whose index is far too large. The caller
// holds the slot's lock.
func (b *rebuilder) refit(s *slot) {
	limit := b.cfg.MaxScopeBytes
	if r := s.rebuild; r != nil && r.bytes > limit/changesShare {
		s.cancelRebuild()
	}
	switch ix := s.ix; {
	case !compactor{ix}.unfit(limit):
	case ix.liveMems <= maxInlineRebuild:
		s.cancelRebuild()
		s.ix = b.fit(ix)
	case ix.bytes() > limit+max(limit, minOutgrown) || compactor{ix}.overfull():
		b.cache.evict(s)
	case s.rebuild == nil && !time.Now().Before(s.rebuildAfter):
		r := &rebuild{}
		if b.tasks.start(func() { b.run(b.tasks.ctx, s, r) }) {
			s.rebuild = r
		}
	}
}

// run rebuilds a slot's index. If it panics the old index stays.
func (b *rebuilder) run(ctx context.Context, s *slot, r *rebuild) {
	defer func() {
		if recover() != nil {
			b.failed.Add(1)
			b.log.Error("recall index not rebuilt: panic")
			b.giveUp(s, r)
		}
	}()
	select {
	case b.running <- struct{}{}:
		defer func() { <-b.running }()
	case <-ctx.Done():
		return
	}
	from := b.begin(s, r)
	if from == nil {
		return
	}
	b.reserve(r, from.bytes())
	defer b.reserve(r, 0)
	pace := background.Begin()
	proceed := func() bool {
		pace.Pause(ctx)
		return ctx.Err() == nil && s.ready.Load() && !r.cancelled.Load()
	}
	rebuilt := compactor{from}.fitted(b.cfg.MaxScopeBytes, proceed)
	if rebuilt == nil {
		return
	}
	for n := 1; ; n++ {
		left := b.swap(s, r, rebuilt, n == maxSwapRounds)
		if left == nil {
			return
		}
		for i := range left {
			if !proceed() {
				return
			}
			rebuilt.apply(left[i])
		}
	}
}

// begin starts to record changes and returns a copy of the slot's index, or nil
// if the rebuild was cancelled.
func (b *rebuilder) begin(s *slot, r *rebuild) *index {
	s.mu.RLock() // changes, which read r, hold the lock for writing
	defer s.mu.RUnlock()
	if s.rebuild != r {
		return nil
	}
	r.begun = true
	return (blobWriter{s.ix}).recordsOnly()
}

// swap replaces the slot's index by the rebuilt one. If many changes are
// recorded and this is not the last round, it returns these instead.
func (b *rebuilder) swap(s *slot, r *rebuild, rebuilt *index, last bool) (left []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rebuild != r {
		return nil
	}
	size := 0
	for i := range r.changes {
		size += r.changes[i].size()
	}
	if size > maxLockedChanges && !last {
		left, r.changes, r.bytes = r.changes, nil, 0
		return left
	}
	for i := range r.changes {
		rebuilt.apply(r.changes[i])
	}
	b.countOmitted(rebuilt.omitted - s.ix.omitted)
	s.ix, s.rebuild = rebuilt, nil
	b.reserve(r, 0) // before the index is counted, or slots would be evicted for both
	b.log.Debug("recall index rebuilt", "memories", rebuilt.liveMems, "bytes", rebuilt.bytes())
	if s.vec.all != nil {
		b.vectors.count(s, true)
	} else {
		b.cache.countIndex(s)
	}
	b.refit(s)
	return nil
}

// reserve counts the size of a new index in addition to the old one.
func (b *rebuilder) reserve(r *rebuild, bytes int64) {
	b.cache.bytes.Add(bytes - r.reserved)
	r.reserved = bytes
}

// giveUp keeps the old index and starts no other rebuild for a while.
func (b *rebuilder) giveUp(s *slot, r *rebuild) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rebuild == r {
		s.rebuild, s.rebuildAfter = nil, time.Now().Add(rebuildPause)
	}
}

// countOmitted counts memories that were left out of an index.
func (b *rebuilder) countOmitted(n int64) {
	if n == 0 {
		return
	}
	if all := b.omitted.Add(n); b.omittedLog.allow(omittedLogInterval) {
		b.log.Warn("recall index exceeds its limit, oldest memories left out", "omitted", all)
	}
}

// logLimit limits how often a condition is logged.
type logLimit struct{ last atomic.Int64 } // in Unix nanoseconds, 0 for never

// allow reports whether to log now: the first time, and once per interval from
// then on.
func (l *logLimit) allow(interval time.Duration) bool {
	now, last := time.Now().UnixNano(), l.last.Load()
	return (last == 0 || now-last >= int64(interval)) && l.last.CompareAndSwap(last, now)
}
