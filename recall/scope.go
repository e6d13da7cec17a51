package recall

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
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
	vec   scopeVectors

	mu      sync.RWMutex // guards all below; readers of a query hold it for its time
	ix      *index
	loading chan struct{} // closed when the load under way ends; nil if none is
	cancel  context.CancelFunc
	pending []change
	anew    *rebuild  // of ix, waiting or under way; nil if none is
	anewAt  time.Time // none begins before
	err     error     // of the last load
	retryAt time.Time
	rest    rest
	gone    bool // dropped or evicted: a load's result is thrown away
}

// retryAfter is how long a scope whose load failed waits before the store is asked again.
const retryAfter = time.Second

// failedTold is how often a load that failed is told of at most: while the store is away one fails for every user who asks.
const failedTold = 10 * time.Second

// maxPending bounds the changes that wait for a load. Beyond it the load starts again when it has ended.
const maxPending = 4096

// scopeOverhead is counted for every scope held, in bytes.
const scopeOverhead = 2 << 10

// change is one Add or Forget, analysed.
type change struct {
	turn     string
	passages []passage
	ghosts   map[string]uint64 // fingerprints of memories that the store has and that may not be returned
	gone     []string          // ids, those of the ghosts included
}

// place returns the scope's place.
func (e *Engine) place(scope storage.Scope) *scopeIndex {
	v, ok := e.scopes.Load(scope)
	if !ok {
		fresh := &scopeIndex{scope: scope}
		fresh.used.Store(e.clock.Add(1))
		v, ok = e.scopes.LoadOrStore(scope, fresh)
		if !ok {
			e.hold(fresh, scopeOverhead)
		}
	}
	return v.(*scopeIndex)
}

// acquire returns the scope's place and makes sure that a load is under way if it is not loaded.
func (e *Engine) acquire(ctx context.Context, scope storage.Scope) (*scopeIndex, error) {
	for {
		s := e.place(scope)
		if s.ready.Load() {
			return s, nil
		}
		switch err := e.load(ctx, s); {
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
func (e *Engine) load(ctx context.Context, s *scopeIndex) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
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
	life, cancel := context.WithTimeout(e.life, e.cfg.LoadTimeout)
	s.loading, s.cancel, s.err, s.pending = make(chan struct{}), cancel, nil, nil
	e.loads.Go(func() {
		defer cancel()
		e.runLoad(life, s)
	})
	return nil
}

// tagPreference is what persist tags facts with that say how the user likes things, in any language that it knows.
const tagPreference = "preference"

// passage analyzes a memory, which it refers to from then on. The terms are numbers in the space of numbers if with numbers them.
func (e *Engine) passage(with *text.Analyzer, numbers *numberSpace, m *storage.Memory) passage {
	a := e.analyses.Get().(*text.Analysis)
	defer e.analyses.Put(a)
	with.Analyze(m.Text, text.English, a)
	switch {
	case m.Kind == storage.KindResource: // what a document orders or prefers is not the user's wish
		a.Traits &^= text.HasPreference
	case slices.Contains(m.Tags, tagPreference):
		a.Traits |= text.HasPreference
	}
	p := passage{memory: m, traits: a.Traits, language: a.Language}
	if numbers != nil {
		p.numbers = numbers.copyOf(a.Numbers)
	} else {
		p.terms = slices.Clone(a.Terms)
	}
	return p
}

// prepare analyses what Add was given; that needs no lock.
func (e *Engine) prepare(turn string, ms []storage.Memory) change {
	c := change{turn: turn}
	for i := range ms {
		if m := &ms[i]; recallable(m) {
			own := *m // the caller keeps its memories
			c.passages = append(c.passages, e.passage(e.analyzer, nil, &own))
			if e.snapshots != nil {
				c.passages[len(c.passages)-1].print = m.Fingerprint()
			}
		} else {
			c.gone = append(c.gone, m.ID)
			if e.snapshots != nil {
				if c.ghosts == nil {
					c.ghosts = map[string]uint64{}
				}
				c.ghosts[m.ID] = m.Fingerprint()
			}
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
		work := e.works.Get().(*workspace)
		s.ix.work = work
		s.anew.note(&c) // first: a change that panics in the midst of it is made in neither, or in both
		s.change(c)
		if work.small() {
			work.conversation.id = "" // a number of this index
			e.works.Put(work)
		}
		if e.refit(s); s.gone {
			return
		}
		e.hold(s, s.ix.bytes()+scopeOverhead)
		e.vectors.scopeChanged(s, &c)
	}
}

// change changes the index, and the tally with it.
func (s *scopeIndex) change(c change) {
	if s.rest.tally != nil {
		s.rest.tally.apply(s.ix, &c)
		s.rest.touch(len(c.passages) + len(c.gone))
	}
	s.ix.apply(c)
}

// wait blocks until the load under way, if any, has ended, and returns why it failed.
func (s *scopeIndex) wait(ctx context.Context) error {
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
	s.leaveRebuild()
	s.ready.Store(false)
	if s.cancel != nil {
		s.cancel()
	}
}
