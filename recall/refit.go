package recall

import (
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/background"
)

// Rebuilds. An index that wastes memory or is larger than its bound is made anew. Up to rebuiltAtOnce memories that is done within
// the change that brought it there; a larger one takes seconds, and is made anew beside the one that answers, of a copy that
// shares what is only appended to:
//
//  1. begin takes the copy, under the scope's lock for reading. From here on changes are made in the index that answers, as ever, and noted.
//  2. fitted makes the new one with no lock held, and gives way to requests.
//  3. swap makes in the new one what was noted meanwhile, in the same order, the most of it with no lock held, and puts it in the old
//     one's place. So what was forgotten meanwhile is in neither.
//
// A scope that was dropped or evicted meanwhile has let go of its rebuild: nothing of it is seen again. So has one of which too
// much is noted; the next change begins anew. One rebuild is at work at a time, the others wait; an index that has outgrown
// its bound twofold by then, and by outgrown, is dropped, and loaded again.

const (
	// rebuiltAtOnce memories take some five milliseconds.
	rebuiltAtOnce = 512
	// An index answers with what is to be done to it: a quarter of its bound of changes may be noted, and where few things are left to do
	// they are done under its lock, as they are after so many rounds.
	notedShare  = 4
	fewNoted    = 64
	swapsAtMost = 8
	outgrown    = 16 << 20
	// rebuildAgain is how long an index whose rebuild panicked is left as it is.
	rebuildAgain = time.Minute
)

// rebuild is one that waits or is under way. The scope's lock guards it.
type rebuild struct {
	off     atomic.Bool // it is not wanted any more
	begun   bool
	changes []change // since it began, or since they were last made in the new index
	bytes   int64    // that they take, about

	reserved int64 // of the engine's bytes, for the new index beside the old one; the rebuild's own
}

// reserve sets what is counted for the new index.
func (e *Engine) reserve(a *rebuild, bytes int64) {
	e.held.Add(bytes - a.reserved)
	a.reserved = bytes
}

// leaveRebuild ends the rebuild that waits or is under way, if there is one. The caller holds the scope's lock.
func (s *scopeIndex) leaveRebuild() {
	if s.anew != nil {
		s.anew.off.Store(true)
		s.anew = nil
	}
}

// note notes a change. The caller holds the scope's lock.
func (a *rebuild) note(c *change) {
	if a == nil || !a.begun {
		return
	}
	a.changes = append(a.changes, *c)
	a.bytes += c.bytes()
}

// size is how many memories a change is about.
func (c *change) size() int { return len(c.passages) + len(c.gone) }

// bytes estimates what a change keeps.
func (c *change) bytes() int64 {
	const aMemory, aTerm, anID = 512, 24, 80
	n := int64(anID * len(c.gone))
	for i := range c.passages {
		n += int64(aMemory + aTerm*len(c.passages[i].terms) + len(c.passages[i].memory.Text))
	}
	return n
}

// unfit reports whether an index is to be made anew.
func (ix compactor) unfit(bound int64) bool {
	return ix.wasteful() || (ix.bytes() > bound || ix.full()) && ix.live > 1
}

// refit sees to it that an index that is not fit is made anew: at once if that takes no time, or else in the background. The
// caller holds the scope's lock, and finds the scope gone if its index has outgrown everything.
func (e *Engine) refit(s *scopeIndex) {
	most := e.cfg.MaxScopeBytes
	if a := s.anew; a != nil && a.bytes > most/notedShare {
		s.leaveRebuild()
	}
	switch ix := s.ix; {
	case !compactor{ix}.unfit(most):
	case ix.liveMems <= rebuiltAtOnce:
		s.leaveRebuild()
		s.ix = e.fit(ix)
	case ix.bytes() > most+max(most, outgrown) || compactor{ix}.overfull():
		e.letGo(s)
	case s.anew == nil && !time.Now().Before(s.anewAt):
		a := &rebuild{}
		if e.background(func() { e.rebuild(s, a) }) {
			s.anew = a
		}
	}
}

// rebuild makes an index anew. A panic leaves it as it is.
func (e *Engine) rebuild(s *scopeIndex, a *rebuild) {
	defer func() {
		if r := recover(); r != nil {
			e.failed.Add(1)
			e.log.Error("recall index not rebuilt: panic")
			e.giveUp(s, a)
		}
	}()
	select {
	case e.rebuilding <- struct{}{}:
		defer func() { <-e.rebuilding }()
	case <-e.life.Done():
		return
	}
	from := e.begin(s, a)
	if from == nil {
		return
	}
	e.reserve(a, from.bytes())
	defer e.reserve(a, 0)
	pace := background.Begin()
	goOn := func() bool {
		pace.Pause(e.life)
		return e.life.Err() == nil && s.ready.Load() && !a.off.Load()
	}
	made := compactor{from}.fitted(e.cfg.MaxScopeBytes, goOn)
	if made == nil {
		return
	}
	for n := 1; ; n++ {
		left := e.swap(s, a, made, n == swapsAtMost)
		if left == nil {
			return
		}
		for i := range left {
			if !goOn() {
				return
			}
			made.apply(left[i])
		}
	}
}

// begin returns a copy of the index to make the new one of, nil if that is not wanted any more. From here on changes are noted.
func (e *Engine) begin(s *scopeIndex, a *rebuild) *index {
	s.mu.RLock() // who changes the index looks at a under the lock for writing
	defer s.mu.RUnlock()
	if s.anew != a {
		return nil
	}
	a.begun = true
	return (blobWriter{s.ix}).recordsOnly()
}

// swap puts the new index in the place of the old one. If there is much to make in it before, that is returned instead, but for the
// last time.
func (e *Engine) swap(s *scopeIndex, a *rebuild, made *index, last bool) (left []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.anew != a {
		return nil
	}
	size := 0
	for i := range a.changes {
		size += a.changes[i].size()
	}
	if size > fewNoted && !last {
		left, a.changes, a.bytes = a.changes, nil, 0
		return left
	}
	for i := range a.changes {
		made.apply(a.changes[i])
	}
	e.omit(made.omitted - s.ix.omitted)
	s.ix, s.anew = made, nil
	e.reserve(a, 0) // or others would be dropped for both
	e.log.Debug("recall index rebuilt", "memories", made.liveMems, "bytes", made.bytes())
	if s.vec.all != nil {
		e.vectors.count(s, true)
	} else {
		e.hold(s, made.bytes()+scopeOverhead)
	}
	e.refit(s)
	return nil
}

// giveUp leaves an index that can't be made anew as it is, for a while.
func (e *Engine) giveUp(s *scopeIndex, a *rebuild) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.anew == a {
		s.anew, s.anewAt = nil, time.Now().Add(rebuildAgain)
	}
}
