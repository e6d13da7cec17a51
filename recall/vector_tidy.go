package recall

import (
	"context"

	"github.com/remora-proxy/remora/storage"
)

// vectorsChanged follows a change of the index. The caller holds the scope's lock.
func (e *Engine) vectorsChanged(s *scopeIndex, c *change) {
	v := s.vec.all
	if v == nil {
		return
	}
	for _, id := range c.gone {
		e.unwant(s, s.ix.hash(id))
	}
	for i := range c.passages {
		m := c.passages[i].memory
		id := s.ix.hash(m.ID)
		if at, ok := v.has(id); ok && at.text == stableHash(m.Text) {
			continue
		}
		e.unwant(s, id)
		v.want(id)
	}
	if c.turn != "" { // passages that the turn had and has no more
		for n := len(c.passages) + len(c.gone); ; n++ {
			id := s.ix.hash(storage.TurnMemoryID(c.turn, n))
			if _, ok := v.at[id]; !ok {
				break
			}
			e.unwant(s, id)
		}
	}
	e.holdVectors(s, true)
	if len(v.todo) > 0 {
		e.embedLater(s)
	}
	e.tidyLater(s)
}

// tidyLater tidies in the background if there is need. The caller holds the scope's lock.
func (e *Engine) tidyLater(s *scopeIndex) {
	if len(s.vec.untidy) == 0 || s.vec.tidying.Swap(true) {
		return
	}
	if !e.background(func() { defer e.survive(); e.tidy(s) }) {
		s.vec.tidying.Store(false)
	}
}

// unwant forgets the vector of a memory and notes the record that holds it.
func (e *Engine) unwant(s *scopeIndex, id uint64) {
	if at, ok := s.vec.all.has(id); ok {
		s.vec.untidy[at.segment] = true
	}
	s.vec.all.remove(id)
}

// tidy writes the segments anew that hold vectors of what is gone.
func (e *Engine) tidy(s *scopeIndex) {
	done, ok := e.erasing.writes(e.life, s.scope)
	if !ok {
		return
	}
	defer done()
	e.vec.commit.Lock()
	defer e.vec.commit.Unlock()
	s.vec.tidying.Store(false)
	put, remove, taken := e.untidySegments(s)
	if len(taken) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(e.life, storePatient)
	defer cancel()
	err := deleteRecords(ctx, e.vec.local, remove)
	if err == nil {
		err = putRecords(ctx, e.vec.local, put)
	}
	if err == nil {
		return
	}
	e.vec.failures.Add(1)
	e.log.Warn("recall vectors not tidied; tried again with the next change", "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range taken {
		s.vec.untidy[n] = true
	}
}

// untidySegments takes the segments to tidy, as they are in memory.
func (e *Engine) untidySegments(s *scopeIndex) (put []storage.Record, remove []storage.RecordRef, taken map[uint32]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.ix == nil || s.vec.all == nil || len(s.vec.untidy) == 0 {
		return nil, nil, nil
	}
	taken, s.vec.untidy = s.vec.untidy, map[uint32]bool{}
	slots := map[uint32][]int32{}
	for slot, m := range s.vec.all.marks {
		if taken[m.segment] {
			slots[m.segment] = append(slots[m.segment], int32(slot))
		}
	}
	for n := range taken {
		if r, entries := e.segmentRecord(s, n, slots[n], nil); entries > 0 {
			put = append(put, r)
		} else {
			remove = append(remove, r.Ref())
		}
	}
	return put, remove, taken
}

// segmentRecord is the record of a segment with what stands in these slots, and with these more. The caller holds the
// scope's lock.
func (e *Engine) segmentRecord(s *scopeIndex, number uint32, slots []int32, more []embedded) (r storage.Record, entries int) {
	v := s.vec.all
	seg := segment{number: number, model: e.cfg.Vectors.Embedder.Model(), dim: v.dim}
	r = storage.Record{Bucket: storage.BucketIndex, Scope: s.scope, Key: segmentKey(number)}
	forever := false
	expire := func(id uint64) {
		if i, ok := s.ix.memoryByHash(id); ok {
			at := s.ix.expires(i)
			forever = forever || at == 0
			r.ExpiresAt = max(r.ExpiresAt, at)
		}
	}
	for _, slot := range slots {
		seg.add(v.marks[slot].id, v.marks[slot].text, v.numbers(slot))
		expire(v.ids[slot])
	}
	for _, m := range more {
		seg.dim = len(m.numbers)
		seg.add(m.mark.id, m.mark.text, m.numbers)
		expire(m.id)
	}
	if forever {
		r.ExpiresAt = 0
	}
	if seg.len() > 0 {
		r.Value = seg.value()
	}
	return r, seg.len()
}
