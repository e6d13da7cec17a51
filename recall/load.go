package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// loader loads the indexes of scopes, from snapshots or from their memories.
type loader struct {
	cfg       *Config
	src       Source
	log       *slog.Logger
	seed      uint64
	tasks     *tasks
	cache     *scopeCache
	reader    *memoryReader
	rebuilder *rebuilder
	snapshots *snapshotter // nil if there are none
	vectors   *vectorKeeper

	running chan struct{} // holds an element for each load that runs

	loaded, uncoded, failed, damaged atomic.Int64
	failedLog                        logLimit
}

const (
	// loadPause follows a load that failed.
	loadPause = time.Second
	// failedLogInterval is the shortest time between two warnings of failed
	// loads. During an outage of the store one fails for every user.
	failedLogInterval = 10 * time.Second
	// maxPending bounds the changes that wait for a load. With more it fails,
	// and the next request starts another.
	maxPending = 4096
	// cachedWords is the number of words that the analyzer for queries and new
	// memories caches, loadWords that of the analyzer of a large load.
	cachedWords = 1 << 13
	loadWords   = 1 << 15
)

// acquire returns the scope's slot. If the slot is not loaded, a load is
// running when acquire returns.
func (l *loader) acquire(ctx context.Context, scope storage.Scope) (*slot, error) {
	for {
		s := l.cache.slot(scope)
		if s.ready.Load() {
			return s, nil
		}
		err := l.start(ctx, s)
		if !errors.Is(err, errDropped) {
			return s, err
		}
	}
}

// start starts a load unless one is running or the last failed just now.
func (l *loader) start(ctx context.Context, s *slot) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	switch {
	case s.dropped:
		return errDropped
	case s.ix != nil || s.loading != nil:
		return nil
	case s.err != nil && time.Now().Before(s.retryAfter):
		return s.err
	}
	loadCtx, cancel := context.WithTimeout(l.tasks.ctx, l.cfg.LoadTimeout)
	started := l.tasks.start(func() {
		defer cancel()
		if l.load(loadCtx, s) {
			l.codeTexts(s)
			l.uncoded.Add(-1)
		}
	})
	if !started {
		cancel()
		return errClosed
	}
	s.loading, s.cancelLoad, s.err, s.pending = make(chan struct{}), cancel, nil, nil
	s.loadBegan.Store(time.Now().UnixNano())
	return nil
}

// enter waits until fewer than Config.MaxLoads loads run. If ok, leave must be
// called.
func (l *loader) enter(ctx context.Context) (leave func(), ok bool) {
	select {
	case l.running <- struct{}{}:
		return func() { <-l.running }, true
	case <-ctx.Done():
		return nil, false
	}
}

// load builds the index and publishes it, or records why that failed. It
// reports whether the texts of the index are still to be coded.
func (l *loader) load(ctx context.Context, s *slot) (uncoded bool) {
	began := time.Now()
	ix, t, restored, err := l.build(ctx, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.loading
	s.loading, s.cancelLoad = nil, nil
	s.loadBegan.Store(0)
	defer close(done)
	if s.dropped {
		s.err = errDropped
		return false
	}
	if err == nil && len(s.pending) > maxPending {
		err = fmt.Errorf("load index: too many changes while loading: %w", storage.ErrUnavailable)
	}
	if err == nil {
		err = l.publish(s, ix, t, restored)
	}
	if s.dropped { // the pending changes made the index far too large
		return false
	}
	if err != nil {
		l.failed.Add(1)
		s.err, s.retryAfter, s.pending = err, time.Now().Add(loadPause), nil
		l.cache.count(s, slotOverhead)
		if l.failedLog.allow(failedLogInterval) {
			l.log.Warn("recall index not loaded", "error", err, "failures", l.failed.Load())
		}
		return false
	}
	l.loaded.Add(1)
	l.log.Debug("recall index loaded", "memories", s.ix.liveMems, "bytes", s.ix.bytes(), "snapshot", restored, "took", time.Since(began))
	if uncoded = s.ix.later; uncoded {
		l.uncoded.Add(1)
	}
	return uncoded
}

// publish makes a loaded index answer, after it has made the pending changes.
// If it fails the slot stays empty. The caller holds the slot's lock.
func (l *loader) publish(s *slot, ix *index, t *tally, restored bool) (err error) {
	defer func() {
		if err != nil {
			s.ix, s.saved = nil, snapshotState{}
			s.cancelRebuild()
			s.ready.Store(false)
		}
	}()
	defer recoverLoad(&err)
	s.ix, s.saved = ix, snapshotState{tally: t, changed: time.Now(), unsaved: !restored, changes: ix.live}
	if restored {
		s.saved.changes = 0
	}
	for _, c := range s.pending {
		s.change(c)
	}
	s.pending = nil
	l.rebuilder.refit(s)
	if s.dropped {
		return errDropped
	}
	s.ready.Store(true)
	l.cache.countIndex(s)
	l.vectors.scopeLoaded(s)
	return nil
}

// recoverLoad is deferred to make a panic over stored data a failed load.
func recoverLoad(err *error) {
	if recover() != nil {
		*err = fmt.Errorf("load index: panic: %w", storage.ErrUnavailable)
	}
}

// build restores an index from its snapshot, or builds it from the memories.
func (l *loader) build(ctx context.Context, s *slot) (ix *index, t *tally, restored bool, err error) {
	defer recoverLoad(&err)
	leave, ok := l.enter(ctx)
	if !ok {
		return nil, nil, false, fmt.Errorf("load index: %w", errors.Join(storage.ErrUnavailable, ctx.Err()))
	}
	defer leave()
	if l.snapshots != nil {
		if ix, t = l.snapshots.restore(ctx, s.scope); ix != nil {
			return l.rebuilder.fit(ix), t, true, nil
		}
		t = &tally{}
	}
	ix, err = l.scan(ctx, s, t)
	return ix, t, false, err
}

// scan builds an index from the memories in the store, and counts them in t,
// which may be nil.
func (l *loader) scan(ctx context.Context, s *slot, t *tally) (*index, error) {
	ix := newIndex(l.seed, l.reader.analyzer)
	ix.building, ix.later = true, true
	turns := turnGroup{ix: ix}
	analyzer := l.reader.analyzer
	var numbers *numberSpace // set in a large load, which numbers terms as it reads
	ctx, cancel := context.WithCancel(ctx)
	pages := pageReader{ctx: ctx, from: l.src, scope: s.scope, query: storage.Query{Limit: storage.MaxPage}}
	defer pages.leave()
	defer cancel()
	for {
		page, err := pages.next()
		if err != nil {
			return nil, err
		}
		if numbers == nil && page.Next != "" {
			analyzer, numbers = text.NewNumberingAnalyzer(loadWords, ix.term), &numberSpace{}
		}
		l.damaged.Add(int64(page.Damaged))
		for i := range page.Memories {
			m := &page.Memories[i]
			if t != nil {
				t.seen(m)
			}
			if recallable(m) {
				turns.add(l.reader.passage(analyzer, numbers, m))
			}
		}
		if ix.bytes() > l.cfg.MaxScopeBytes { // coding the texts may make it fit
			(listBuilder{ix}).spreadLog()
			ix.learnOfEnough()
		}
		if ix.bytes() > l.cfg.MaxScopeBytes || (compactor{ix}).full() {
			turns.flush()
			if fitted := l.rebuilder.fit(ix); fitted != ix {
				ix, turns.ix = fitted, fitted
				if numbers != nil { // analyzer has the numbers of the old index
					analyzer = text.NewNumberingAnalyzer(loadWords, ix.term)
				}
			}
		}
		l.cache.count(s, ix.bytes()+slotOverhead)
		if page.Next == "" {
			break
		}
	}
	turns.flush()
	ix.later = ix.later && ix.coder == nil && ix.plain >= learnFrom
	ix.compact()
	return l.rebuilder.fit(ix), nil
}

// codeTexts codes the texts of an index that was built without. That takes a
// fifth of the time of the load, which no request has to wait for. If it panics
// the texts stay as they are.
func (l *loader) codeTexts(s *slot) {
	defer func() {
		if recover() != nil {
			l.log.Warn("recall index keeps its texts uncoded: panic")
		}
	}()
	ctx := l.tasks.ctx
	wait := time.NewTimer(codeAfter)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return
	}
	leave, ok := l.enter(ctx) // it takes as much memory as a load
	if !ok {
		return
	}
	defer leave()
	s.mu.RLock()
	ix := s.ix
	if ix == nil || !ix.later {
		s.mu.RUnlock()
		return
	}
	records, mems := arena{chunks: slices.Clone(ix.arena.chunks)}, ix.mems // they are only appended to
	s.mu.RUnlock()
	c := codeRecords(&records, mems)
	c.arena.clip()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ix != ix || !ix.later {
		return
	}
	ix.take(c)
	ix.work = nil
	l.cache.countIndex(s)
}
