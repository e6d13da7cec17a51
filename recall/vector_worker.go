package recall

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

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

// embedded is a memory with its vector, on the way to the store.
type embedded struct {
	id      uint64
	mark    mark
	numbers []int8
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
	var made []embedded
	for i, v := range found {
		m := embedded{id: ids[i], mark: mark{id: stable[i], text: stableHash(texts[i])}}
		if v != nil {
			m.numbers = quantize(v)
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
	for _, id := range v.next(roundTexts) {
		i, ok := s.ix.memoryByHash(id)
		if !ok { // left out of the index since
			v.remove(id)
			continue
		}
		m := s.ix.memory(i, s.scope)
		ids, stable, texts = append(ids, id), append(stable, stableHash(m.ID)), append(texts, m.Text)
	}
	s.vec.wanting.Store(int64(v.wanting))
	return ids, stable, texts
}

// wantAgain puts back what has no vector yet, and reports whether anything waits.
func (e *Engine) wantAgain(s *scopeIndex, ids []uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.ix == nil || s.vec.all == nil {
		return false
	}
	for _, id := range ids {
		if at, ok := s.vec.all.at[id]; ok && at == wanted {
			s.vec.all.todo = append(s.vec.all.todo, id)
		}
	}
	return len(s.vec.all.todo) > 0
}

// keepVectors stores vectors durably, then uses them. Those whose memory is gone or says something else by now are not
// stored.
func (e *Engine) keepVectors(s *scopeIndex, made []embedded) error {
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
	if err := putRecords(ctx, e.vec.local, records); err != nil {
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
		case still && m.numbers == nil:
			v.refuse(m.id)
			e.vec.refused.Add(1)
		case still && v.put(m.id, m.mark, m.numbers):
			e.vec.embedded.Add(1)
			s.vec.last = max(s.vec.last, m.mark.segment)
		case m.mark.segment != 0: // went while it was stored
			s.vec.untidy[m.mark.segment] = true
			s.vec.last = max(s.vec.last, m.mark.segment)
		}
	}
	e.holdVectors(s, false)
	e.tidyLater(s)
	return nil
}

// stillWanted reports whether a memory is there, says the same and has no vector yet. The caller holds the scope's lock.
func (e *Engine) stillWanted(s *scopeIndex, m *embedded) bool {
	if at, ok := s.vec.all.at[m.id]; !ok || at != wanted {
		return false
	}
	i, ok := s.ix.memoryByHash(m.id)
	return ok && stableHash(s.ix.memory(i, s.scope).Text) == m.mark.text
}

// newRecords gives every vector that is still wanted a segment, filling the newest first.
func (e *Engine) newRecords(s *scopeIndex, made []embedded) ([]storage.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.gone || s.ix == nil || s.vec.all == nil {
		return nil, nil
	}
	v := s.vec.all
	number, room := s.vec.last, 0
	var slots []int32 // of what the segment has already
	if number > 0 {
		for slot, m := range v.marks {
			if m.segment == number {
				slots = append(slots, int32(slot))
			}
		}
		room = segmentEntries - len(slots)
	}
	var records []storage.Record
	var part []embedded
	flush := func() {
		if len(part) > 0 {
			r, _ := e.segmentRecord(s, number, slots, part)
			records = append(records, r)
		}
		slots, part = nil, nil
	}
	for i := range made {
		m := &made[i]
		if m.numbers == nil || !e.stillWanted(s, m) {
			continue
		}
		if v.dim != 0 && len(m.numbers) != v.dim {
			return nil, errVectorDimension
		}
		if room <= 0 {
			flush()
			number, room = number+1, segmentEntries
		}
		room--
		m.mark.segment = number
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
	if err := dropVectorRecords(ctx, e.vec.local, scope, ids...); err != nil {
		e.vec.failures.Add(1)
		e.log.Warn("stored vectors of forgotten memories not removed; the next load of the scope does it", "error", err)
	}
}
