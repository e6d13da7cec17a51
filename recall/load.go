package recall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// runLoad builds the index and publishes it, and codes its texts if that is left to do.
func (e *Engine) runLoad(ctx context.Context, s *scopeIndex) {
	if e.publish(ctx, s) {
		e.codeTexts(s)
		e.uncoded.Add(-1)
	}
}

// publish builds the index and lets it answer, or notes why it could not. It reports whether its texts are to be coded.
func (e *Engine) publish(ctx context.Context, s *scopeIndex) (later bool) {
	began := time.Now()
	ix, t, restored, err := e.build(ctx, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.loading
	s.loading, s.cancel = nil, nil
	defer close(done)
	if s.gone {
		s.err = errGone
		return false
	}
	if err == nil && len(s.pending) > maxPending {
		err = fmt.Errorf("load index: too many changes while loading: %w", storage.ErrUnavailable)
	}
	if err == nil {
		err = e.answer(s, ix, t, restored)
	}
	if s.gone { // what came meanwhile made it outgrow its bounds
		return false
	}
	if err != nil {
		e.failed.Add(1)
		s.err, s.retryAt, s.pending = err, time.Now().Add(retryAfter), nil
		e.hold(s, scopeOverhead)
		if e.failedTold.due(failedTold) {
			e.log.Warn("recall index not loaded", "error", err, "failures", e.failed.Load())
		}
		return false
	}
	e.loaded.Add(1)
	e.log.Debug("recall index loaded", "memories", s.ix.liveMems, "bytes", s.ix.bytes(), "snapshot", restored, "took", time.Since(began))
	if later = s.ix.later; later {
		e.uncoded.Add(1)
	}
	return later
}

// answer has an index answer that was built, after the changes that came meanwhile. Nothing of it stays after an error. The caller
// holds the scope's lock.
func (e *Engine) answer(s *scopeIndex, ix *index, t *tally, restored bool) (err error) {
	defer func() {
		if err != nil {
			s.ix, s.rest = nil, rest{}
			s.leaveRebuild()
			s.ready.Store(false)
		}
	}()
	defer failedByPanic(&err)
	s.ix, s.rest = ix, rest{tally: t, changed: time.Now(), unsaved: !restored, changes: ix.live}
	if restored {
		s.rest.changes = 0
	}
	for _, c := range s.pending {
		s.change(c)
	}
	s.pending = nil
	e.refit(s)
	if s.gone { // it is to be loaded anew
		return errGone
	}
	s.ready.Store(true)
	e.hold(s, s.ix.bytes()+scopeOverhead)
	e.vectors.scopeLoaded(s)
	return nil
}

// failedByPanic is deferred where a panic over what is stored is a failed load, not the end of the process.
func failedByPanic(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("load index: panic: %w", storage.ErrUnavailable)
	}
}

// build reads a snapshot or scans the store.
func (e *Engine) build(ctx context.Context, s *scopeIndex) (ix *index, t *tally, restored bool, err error) {
	defer failedByPanic(&err)
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return nil, nil, false, fmt.Errorf("load index: %w", errors.Join(storage.ErrUnavailable, ctx.Err()))
	}
	if e.snapshots != nil {
		if ix, t = e.restore(ctx, s.scope); ix != nil {
			return e.fit(ix), t, true, nil
		}
		t = &tally{}
	}
	ix = newIndex(e.seed, e.analyzer)
	ix.building, ix.later = true, true
	group := turnGroup{ix: ix}
	words := e.analyzer
	var numbers *numberSpace // of a large load, which numbers terms as it reads
	ctx, cancel := context.WithCancel(ctx)
	pages := pageReader{ctx: ctx, from: e.src, scope: s.scope, query: storage.Query{Limit: storage.MaxPage}}
	defer pages.leave()
	defer cancel()
	for {
		page, err := pages.next()
		if err != nil {
			return nil, nil, false, err
		}
		if numbers == nil && page.Next != "" {
			words, numbers = text.NewNumberingAnalyzer(loadWords, ix.term), &numberSpace{}
		}
		e.damaged.Add(int64(page.Damaged))
		for i := range page.Memories {
			m := &page.Memories[i]
			if t != nil {
				t.seen(m)
			}
			if recallable(m) {
				group.add(e.passage(words, numbers, m))
			}
		}
		if ix.bytes() > e.cfg.MaxScopeBytes { // rather than drop memories that would fit
			(listBuilder{ix}).spreadLog()
			ix.learnOfEnough()
		}
		if ix.bytes() > e.cfg.MaxScopeBytes || (compactor{ix}).full() {
			group.flush()
			if fitted := e.fit(ix); fitted != ix {
				ix, group.ix = fitted, fitted
				if numbers != nil { // words has the numbers of the old index
					words = text.NewNumberingAnalyzer(loadWords, ix.term)
				}
			}
		}
		e.hold(s, ix.bytes()+scopeOverhead)
		if page.Next == "" {
			break
		}
	}
	group.flush()
	ix.later = ix.later && ix.coder == nil && ix.plain >= learnFrom
	ix.compact()
	return e.fit(ix), t, false, nil
}

// Words that are cached by the analyzer of an engine, which reads queries and new turns, and by that of a large load.
const (
	cachedWords = 1 << 13
	loadWords   = 1 << 15
)

// numberSpace is memory for the numbers of many texts.
type numberSpace struct{ free []uint32 }

// copyOf returns a copy of the numbers of a text, never nil.
func (s *numberSpace) copyOf(numbers []uint32) []uint32 {
	const chunk = 1 << 13
	if s.free == nil || cap(s.free)-len(s.free) < len(numbers) {
		s.free = make([]uint32, 0, max(chunk, len(numbers)))
	}
	from := len(s.free)
	s.free = append(s.free, numbers...)
	return s.free[from:len(s.free):len(s.free)]
}

// turnGroup collects the passages of one turn while records stream by. The records of a turn come close together, but
// those of other turns may stand between them, so a small window of turns is kept open.
type turnGroup struct {
	ix   *index
	open [openTurns]openTurn
	next int // of open, the next to be closed
}

type openTurn struct {
	key      turnName
	passages []passage // none where no turn is open
}

const openTurns = 16

func (g *turnGroup) add(p passage) {
	key := turnKey(p.memory)
	for i := range g.open {
		if t := &g.open[i]; t.key == key {
			t.passages = append(t.passages, p)
			return
		}
	}
	g.close()
	t := &g.open[g.next]
	t.key, t.passages = key, append(t.passages, p)
	g.next = (g.next + 1) % openTurns
}

// close closes the next turn, if one is open there.
func (g *turnGroup) close() {
	t := &g.open[g.next]
	if len(t.passages) > 0 {
		g.ix.merge(t.passages)
	}
	clear(t.passages)
	t.key, t.passages = turnName{}, t.passages[:0]
}

func (g *turnGroup) flush() {
	for range g.open {
		g.close()
		g.next = (g.next + 1) % openTurns
	}
}
