package recall

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// scopeIndex is one scope's place in the engine: empty, loading, loaded, or failed and waiting to be tried again.
//
// Memories may arrive while the scope loads. Whoever adds them has written them to the store first, so either the scan
// sees them or they come after it began and wait in pending; a memory seen twice replaces itself.
type scopeIndex struct {
	scope storage.Scope
	used  atomic.Int64 // engine clock at the last use
	ready atomic.Bool  // ix is loaded
	held  atomic.Int64 // bytes counted in the engine

	mu      sync.RWMutex // guards all below; readers of a query hold it for its time
	ix      *index
	loading chan struct{} // closed when the load under way ends; nil if none is
	cancel  context.CancelFunc
	pending []change
	err     error // of the last load
	retryAt time.Time
	gone    bool // dropped or evicted: a load's result is thrown away
}

// retryAfter is how long a scope whose load failed waits before the store is asked again.
const retryAfter = time.Second

// maxPending bounds the changes that wait for a load. Beyond it the load starts again when it has ended.
const maxPending = 4096

// scopeOverhead is counted for every scope held, in bytes.
const scopeOverhead = 2 << 10

// change is one Add or Forget, analysed.
type change struct {
	turn     string
	passages []passage
	gone     []string
}

// acquire returns the scope's place and makes sure that a load is under way if it is not loaded.
func (e *Engine) acquire(scope storage.Scope) (*scopeIndex, error) {
	for {
		v, ok := e.scopes.Load(scope)
		if !ok {
			fresh := &scopeIndex{scope: scope}
			fresh.used.Store(e.clock.Add(1))
			v, ok = e.scopes.LoadOrStore(scope, fresh)
			if !ok {
				e.hold(fresh, scopeOverhead)
			}
		}
		s := v.(*scopeIndex)
		if s.ready.Load() {
			return s, nil
		}
		switch err := e.load(s); {
		case errors.Is(err, errGone):
			continue // evicted between the two looks
		case err != nil:
			return nil, err
		}
		return s, nil
	}
}

var errGone = errors.New("scope dropped")

// load starts a load unless one is under way or the last failure is too fresh.
func (e *Engine) load(s *scopeIndex) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone:
		return errGone
	case s.ix != nil || s.loading != nil:
		return nil
	case s.err != nil && time.Now().Before(s.retryAt):
		return s.err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	ctx, cancel := context.WithTimeout(e.life, e.cfg.LoadTimeout)
	s.loading, s.cancel, s.err, s.pending = make(chan struct{}), cancel, nil, nil
	e.loads.Go(func() {
		defer cancel()
		e.runLoad(ctx, s)
	})
	return nil
}

// runLoad builds the index and publishes it, or notes why it could not.
func (e *Engine) runLoad(ctx context.Context, s *scopeIndex) {
	began := time.Now()
	ix, err := e.build(ctx, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.loading
	s.loading, s.cancel = nil, nil
	defer close(done)
	if s.gone {
		s.err = errGone
		return
	}
	if err == nil && len(s.pending) > maxPending {
		err = fmt.Errorf("load index: too many changes while loading: %w", storage.ErrUnavailable)
	}
	if err != nil {
		e.failed.Add(1)
		s.err, s.retryAt, s.pending = err, time.Now().Add(retryAfter), nil
		e.hold(s, scopeOverhead)
		e.log.Warn("recall index not loaded", "error", err)
		return
	}
	for _, c := range s.pending {
		ix.apply(c)
	}
	s.pending = nil
	s.ix = e.fit(ix)
	s.ready.Store(true)
	e.loaded.Add(1)
	e.hold(s, s.ix.bytes()+scopeOverhead)
	e.log.Debug("recall index loaded", "memories", ix.liveMems, "bytes", ix.bytes(), "took", time.Since(began))
}

// build scans the store. A panic while reading what is stored is a failed load, not the end of the process.
func (e *Engine) build(ctx context.Context, s *scopeIndex) (ix *index, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("load index: panic: %w", storage.ErrUnavailable)
		}
	}()
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("load index: %w", errors.Join(storage.ErrUnavailable, ctx.Err()))
	}
	ix = newIndex(e.seed)
	group := turnGroup{ix: ix}
	for q := (storage.Query{Limit: storage.MaxPage}); ; {
		page, err := e.src.Scan(ctx, s.scope, q)
		if err != nil {
			if !errors.Is(err, storage.ErrUnavailable) {
				err = errors.Join(storage.ErrUnavailable, err)
			}
			return nil, fmt.Errorf("load index: %w", err)
		}
		e.damaged.Add(int64(page.Damaged))
		for i := range page.Memories {
			if m := &page.Memories[i]; recallable(m) {
				group.add(e.passage(m))
			}
		}
		if ix.bytes() > e.cfg.MaxScopeBytes {
			group.flush()
			ix = e.fit(ix)
			group.ix = ix
		}
		e.hold(s, ix.bytes()+scopeOverhead)
		if page.Next == "" {
			break
		}
		if page.Next == q.After {
			return nil, fmt.Errorf("load index: the store's cursor stands still: %w", storage.ErrUnavailable)
		}
		q.After = page.Next
	}
	group.flush()
	return ix, nil
}

// turnGroup collects the passages of one turn while records stream by. The records of a turn come close together, but
// those of other turns may stand between them, so a small window of turns is kept open.
type turnGroup struct {
	ix   *index
	open []openTurn
}

type openTurn struct {
	key      string
	passages []passage
}

const openTurns = 16

func (g *turnGroup) add(p passage) {
	key := turnKey(&p.memory)
	for i := range g.open {
		if g.open[i].key == key {
			g.open[i].passages = append(g.open[i].passages, p)
			return
		}
	}
	if len(g.open) == openTurns {
		g.ix.merge(g.open[0].passages)
		g.open = slices.Delete(g.open, 0, 1)
	}
	g.open = append(g.open, openTurn{key, []passage{p}})
}

func (g *turnGroup) flush() {
	for _, t := range g.open {
		g.ix.merge(t.passages)
	}
	g.open = nil
}

// merge adds passages to what the index has of their turn already.
func (ix *index) merge(ps []passage) {
	if n, ok := ix.byTurn[ix.hash(turnKey(&ps[0].memory))]; ok {
		t := ix.turns[n]
		for j := t.mem; j < t.mem+int32(t.count); j++ {
			if ix.mems[j].dead {
				continue
			}
			old := ix.passage(j, t.traits)
			if !slices.ContainsFunc(ps, func(p passage) bool { return p.memory.ID == old.memory.ID }) {
				ps = append(ps, old)
			}
		}
	}
	ix.put(ps)
}

// passage analyses a memory.
func (e *Engine) passage(m *storage.Memory) passage {
	var a analysis
	e.analyzer.analyze(m.Text, langEnglish, &a)
	p := passage{memory: *m, terms: a.terms, traits: a.traits, language: a.language}
	p.memory.Redactions, p.memory.Embedding = nil, nil
	return p
}

// prepare analyses what Add was given; that needs no lock.
func (e *Engine) prepare(turn string, ms []storage.Memory) change {
	c := change{turn: turn}
	for i := range ms {
		if m := &ms[i]; recallable(m) {
			c.passages = append(c.passages, e.passage(m))
		} else {
			c.gone = append(c.gone, m.ID)
		}
	}
	return c
}

// apply makes a change now, or after the load under way.
func (e *Engine) apply(s *scopeIndex, c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone:
	case s.loading != nil:
		if len(s.pending) <= maxPending {
			s.pending = append(s.pending, c)
		}
	case s.ix != nil:
		s.ix.apply(c)
		if s.ix.wasteful() || s.ix.bytes() > e.cfg.MaxScopeBytes {
			s.ix = e.fit(s.ix)
		}
		e.hold(s, s.ix.bytes()+scopeOverhead)
	}
}

// apply changes the index.
func (ix *index) apply(c change) {
	for _, id := range c.gone {
		if i, ok := ix.byID[ix.hash(id)]; ok {
			ix.removeMemory(i)
		}
	}
	if c.turn != "" {
		if n, ok := ix.byTurn[ix.hash("t"+c.turn)]; ok {
			ix.remove(n)
		}
	}
	for rest := c.passages; len(rest) > 0; {
		key := turnKey(&rest[0].memory)
		var same, others []passage
		for _, p := range rest {
			if turnKey(&p.memory) == key {
				same = append(same, p)
			} else {
				others = append(others, p)
			}
		}
		if c.turn == "" {
			ix.merge(same)
		} else {
			ix.put(same)
		}
		rest = others
	}
}

// fit rebuilds an index that wastes memory or is larger than its bound; then the oldest turns go, down to nine tenths.
func (e *Engine) fit(ix *index) *index {
	keep := math.MaxInt
	for ix.wasteful() || ix.bytes() > e.cfg.MaxScopeBytes && ix.live > 1 {
		if b := ix.bytes(); b > e.cfg.MaxScopeBytes {
			share := 0.9 * float64(e.cfg.MaxScopeBytes) / float64(b)
			keep = max(min(int(float64(ix.live)*share), ix.live-1), 1)
		}
		before := ix.omitted
		ix = ix.rebuilt(keep)
		if n := ix.omitted - before; n > 0 {
			e.omitted.Add(n)
			e.log.Warn("recall index larger than its bound: its oldest memories are left out", "omitted", n)
		}
	}
	return ix
}

// wait blocks until the load under way, if any, has ended, and returns why it failed.
func (s *scopeIndex) wait(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	s.mu.RLock()
	loading := s.loading
	s.mu.RUnlock()
	if loading != nil {
		select {
		case <-loading:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.gone {
		return nil // the caller finds no index and asks again
	}
	return s.err
}

// abandon makes a load under way pointless.
func (s *scopeIndex) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.ix = true, nil
	s.ready.Store(false)
	if s.cancel != nil {
		s.cancel()
	}
}

// hold sets what a scope counts for, and drops others if that is too much.
func (e *Engine) hold(s *scopeIndex, bytes int64) {
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
			c.s.gone, c.s.ix = true, nil
			c.s.ready.Store(false)
			e.scopes.CompareAndDelete(c.s.scope, c.s)
			e.release(c.s)
			e.evicted.Add(1)
		}
		c.s.mu.Unlock()
	}
}
