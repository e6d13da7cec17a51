package recall

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// fit is fitted, at once.
func (e *Engine) fit(ix *index) *index {
	if ix.later && ix.bytes() > e.cfg.MaxScopeBytes { // rather than drop memories that would fit
		ix.learnOfEnough()
		ix.work = nil
	}
	out := compactor{ix}.fitted(e.cfg.MaxScopeBytes, nil)
	e.omit(out.omitted - ix.omitted)
	return out
}

// fitted returns the index, or one made anew of it if it wastes memory or is larger than its bound; then the oldest turns go, down to
// nine tenths. There is none if goOn, which is asked before every turn, said no.
func (ix compactor) fitted(limit int64, goOn func() bool) *index {
	keep := math.MaxInt
	for ix.index != nil && ix.unfit(limit) {
		// An index whose texts are not coded yet may fit once they are.
		if b := ix.bytes(); (b > limit || ix.full()) && !ix.later {
			share := 0.9 * min(float64(limit)/float64(b), 1)
			keep = max(min(int(float64(ix.live)*share), ix.live-1), 1)
		}
		ix.index = ix.rebuiltWhile(goOn, keep, nil)
	}
	return ix.index
}

// omittedTold is how often is told that indexes are larger than their bound, at most: those of users who say much are again every few
// turns.
const omittedTold = time.Hour

// omit counts memories that were left out, if any were.
func (e *Engine) omit(n int64) {
	if n == 0 {
		return
	}
	if all := e.omitted.Add(n); e.omittedTold.due(omittedTold) {
		e.log.Warn("recall index larger than its bound: its oldest memories are left out", "omitted", all)
	}
}

// seldom is when something was last told, in nanoseconds; 0 = never.
type seldom struct{ told atomic.Int64 }

// due reports whether it is to be told: at first, and then once in so long at most.
func (s *seldom) due(every time.Duration) bool {
	now, told := time.Now().UnixNano(), s.told.Load()
	return (told == 0 || now-told >= int64(every)) && s.told.CompareAndSwap(told, now)
}

// hold sets what a scope counts for, its vectors besides, and drops others if that is too much.
func (e *Engine) hold(s *scopeIndex, bytes int64) {
	bytes += s.vec.bytes.Load()
	e.held.Add(bytes - s.held.Swap(bytes))
	if e.held.Load() > e.cfg.MaxBytes {
		e.shrink(s)
	}
}

func (e *Engine) release(s *scopeIndex) { e.held.Add(-s.held.Swap(0)) }

// shrink drops the least recently used scopes, but never the one at hand nor one that is loading, down to nine tenths of
// the bound. If everything else is loading, the bound is passed for as long as the loads take.
func (e *Engine) shrink(keep *scopeIndex) {
	if !e.evict.TryLock() {
		return
	}
	defer e.evict.Unlock()
	type candidate struct {
		s    *scopeIndex
		used int64
	}
	var all []candidate
	e.scopes.Range(func(_, v any) bool {
		if s := v.(*scopeIndex); s != keep {
			all = append(all, candidate{s, s.used.Load()})
		}
		return true
	})
	slices.SortFunc(all, func(a, b candidate) int { return int(a.used - b.used) })
	for _, c := range all {
		if e.held.Load() <= e.cfg.MaxBytes*9/10 {
			return
		}
		// A scope whose lock is taken is in use.
		if !c.s.mu.TryLock() {
			continue
		}
		if c.s.loading == nil && !c.s.gone {
			if r := &c.s.rest; c.s.ix != nil && r.tally != nil && r.unsaved && !r.hopeless && (blobWriter{c.s.ix}).snapshotable() {
				e.keepEvicted(evicted{c.s.scope, c.s.ix, r.tally, c.s.ix.bytes()})
			}
			e.letGo(c.s)
		}
		c.s.mu.Unlock()
	}
}

// letGo drops a scope; the next request loads it. The caller holds its lock.
func (e *Engine) letGo(s *scopeIndex) {
	s.gone, s.ix = true, nil
	s.leaveRebuild()
	s.ready.Store(false)
	e.scopes.CompareAndDelete(s.scope, s)
	e.release(s)
	e.evicted.Add(1)
}

// keepEvicted has an evicted index written, unless too much waits for that: then the next load reads the records. It counts
// until then.
func (e *Engine) keepEvicted(v evicted) {
	if e.unwritten.Load()+v.bytes > e.cfg.MaxBytes/evictedShare {
		return
	}
	e.unwritten.Add(v.bytes)
	e.held.Add(v.bytes)
	select {
	case e.evictedIndexes <- v:
	default:
		e.wrote(v)
	}
}

// wrote no longer counts what keepEvicted has counted.
func (e *Engine) wrote(v evicted) {
	e.unwritten.Add(-v.bytes)
	e.held.Add(-v.bytes)
}
