package recall

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

// embedLater puts a scope into the worker's queue, and starts the worker if it has left.
func (e *Engine) embedLater(s *scopeIndex) {
	w := &e.vec
	w.mu.Lock()
	defer w.mu.Unlock()
	if !s.vec.queued {
		s.vec.queued = true
		w.queue = append(w.queue, s)
	}
	if !w.working {
		w.working = e.background(func() {
			defer e.survive()
			e.work()
		})
	}
}

// work embeds until nothing is left to embed. While the server fails it tries again ever more seldom.
func (e *Engine) work() {
	left := false
	defer func() { // closed, or a panic
		if !left {
			e.vec.mu.Lock()
			defer e.vec.mu.Unlock()
			e.vec.working = false
		}
	}()
	rest := firstRest
	for {
		s := e.nextScope()
		if s == nil {
			left = true
			return
		}
		more, err := e.embedRound(s)
		if e.life.Err() != nil {
			return
		}
		if more {
			e.embedLater(s)
		}
		if err == nil {
			rest = firstRest
			continue
		}
		e.vec.failures.Add(1)
		e.log.Warn("memories not embedded, tried again later", "error", err, "in", rest.String())
		pause := time.NewTimer(rest/2 + rand.N(rest))
		select {
		case <-pause.C:
		case <-e.life.Done():
			pause.Stop()
			return
		}
		rest = min(2*rest, longestRest)
	}
}

// nextScope takes the first of the queue; with none left the worker is said to have gone, under the same lock.
func (e *Engine) nextScope() *scopeIndex {
	w := &e.vec
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.working = false
		return nil
	}
	s := w.queue[0]
	w.queue[0] = nil
	w.queue = w.queue[1:]
	s.vec.queued = false
	return s
}

// embedRound embeds some memories of a scope and stores their vectors. more says that memories are left.
func (e *Engine) embedRound(s *scopeIndex) (more bool, err error) {
	ids, stable, texts := e.textsToEmbed(s)
	if len(ids) == 0 {
		return false, nil
	}
	sent := texts
	if redact := e.cfg.Vectors.Redact; redact != nil { // rules may have been added since they were stored
		sent = make([]string, len(texts))
		for i, t := range texts {
			sent[i] = redact(t)
		}
	}
	found, err := e.cfg.Vectors.Embedder.Documents(e.life, sent)
	if err == nil && len(found) != len(texts) {
		err = errors.New("embedder: not as many vectors as texts")
	}
	if err != nil {
		return e.wantAgain(s, ids), err
	}
	var made []vector.Entry
	for i, v := range found {
		m := vector.Entry{ID: ids[i], Mark: vector.Mark{Memory: stable[i], Text: vector.Hash(texts[i])}}
		if v != nil {
			m.Numbers = vector.Quantize(v)
		}
		made = append(made, m)
	}
	err = e.keepVectors(s, made)
	if errors.Is(err, errVectorDimension) {
		i := slices.IndexFunc(found, func(v []float32) bool { return v != nil })
		e.reattach(s, len(found[i]))
		return e.wantAgain(s, ids), err
	}
	return e.wantAgain(s, ids), err
}

// textsToEmbed takes the next wanted memories of a scope.
func (e *Engine) textsToEmbed(s *scopeIndex) (ids, stable []uint64, texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.ix == nil || s.vec.all == nil {
		return nil, nil, nil
	}
	v := s.vec.all
	for _, id := range v.Next(roundTexts) {
		i, ok := s.ix.memoryByHash(id)
		if !ok { // left out of the index since
			v.Remove(id)
			continue
		}
		m := s.ix.memory(i, s.scope)
		ids, stable, texts = append(ids, id), append(stable, vector.Hash(m.ID)), append(texts, m.Text)
	}
	s.vec.wanting.Store(int64(v.Wanting()))
	return ids, stable, texts
}

// wantAgain puts back what has no vector yet, and reports whether anything waits.
func (e *Engine) wantAgain(s *scopeIndex, ids []uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.ix == nil || s.vec.all == nil {
		return false
	}
	s.vec.all.Requeue(ids)
	return s.vec.all.Queued()
}

// keepVectors stores vectors durably, then uses them. Those whose memory is gone or says something else by now are not
// stored.
func (e *Engine) keepVectors(s *scopeIndex, made []vector.Entry) error {
	done, ok := e.erasing.writes(e.life, s.scope)
	if !ok {
		return e.life.Err()
	}
	defer done()
	e.vec.commit.Lock()
	defer e.vec.commit.Unlock()
	records, err := e.newRecords(s, made)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.life, storePatient)
	defer cancel()
	if err := vector.PutRecords(ctx, e.vec.local, records); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.ix == nil || s.vec.all == nil {
		return nil
	}
	v := s.vec.all
	for i := range made {
		m := &made[i]
		switch still := e.stillWanted(s, m); {
		case still && m.Numbers == nil:
			v.Refuse(m.ID)
			e.vec.refused.Add(1)
		case still && v.Put(m.ID, m.Mark, m.Numbers):
			e.vec.embedded.Add(1)
			s.vec.last = max(s.vec.last, m.Mark.Segment)
		case m.Mark.Segment != 0: // went while it was stored
			s.vec.untidy[m.Mark.Segment] = true
			s.vec.last = max(s.vec.last, m.Mark.Segment)
		}
	}
	e.holdVectors(s, false)
	e.tidyLater(s)
	return nil
}

// stillWanted reports whether a memory is there, says the same and has no vector yet. The caller holds the scope's lock.
func (e *Engine) stillWanted(s *scopeIndex, m *vector.Entry) bool {
	if !s.vec.all.Wants(m.ID) {
		return false
	}
	i, ok := s.ix.memoryByHash(m.ID)
	return ok && vector.Hash(s.ix.memory(i, s.scope).Text) == m.Mark.Text
}

// newRecords gives every vector that is still wanted a segment, filling the newest first.
func (e *Engine) newRecords(s *scopeIndex, made []vector.Entry) ([]storage.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.gone || s.ix == nil || s.vec.all == nil {
		return nil, nil
	}
	v := s.vec.all
	number, room := s.vec.last, 0
	var held []vector.Entry // of the segment
	if number > 0 {
		held = v.InSegments(map[uint32]bool{number: true})[number]
		room = vector.SegmentEntries - len(held)
	}
	var records []storage.Record
	var part []vector.Entry
	flush := func() {
		if len(part) > 0 {
			r, _ := e.segmentRecord(s, number, held, part)
			records = append(records, r)
		}
		held, part = nil, nil
	}
	for i := range made {
		m := &made[i]
		if m.Numbers == nil || !e.stillWanted(s, m) {
			continue
		}
		if v.Dim() != 0 && len(m.Numbers) != v.Dim() {
			return nil, errVectorDimension
		}
		if room <= 0 {
			flush()
			number, room = number+1, vector.SegmentEntries
		}
		room--
		m.Mark.Segment = number
		part = append(part, *m)
	}
	flush()
	return records, nil
}

// forgetVectors removes the stored vectors of forgotten memories, whether their scope is loaded or not, and whether
// memories are embedded now or were once. The index has forgotten them already.
func (e *Engine) forgetVectors(scope storage.Scope, ids []string) {
	if e.vec.local == nil || len(ids) == 0 {
		return
	}
	e.cleanVectors(scope, ids)
}

// dropVectors removes all that is stored of a scope's vectors: an erasure has done so, but not what landed after it.
func (e *Engine) dropVectors(scope storage.Scope) {
	if e.vec.local != nil {
		e.cleanVectors(scope, nil)
	}
}

func (e *Engine) cleanVectors(scope storage.Scope, ids []string) {
	ctx, cancel := context.WithTimeout(context.Background(), storePatient)
	defer cancel()
	e.vec.commit.Lock()
	defer e.vec.commit.Unlock()
	if err := vector.Forget(ctx, e.vec.local, scope, ids...); err != nil {
		e.vec.failures.Add(1)
		e.log.Warn("stored vectors of forgotten memories not removed; the next load of the scope does it", "error", err)
	}
}
