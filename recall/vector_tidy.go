package recall

import (
	"context"

	"github.com/remora-proxy/remora/recall/vector"
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
		if at, ok := v.Find(id); ok && at.Text == vector.Hash(m.Text) {
			continue
		}
		e.unwant(s, id)
		v.Want(id)
	}
	if c.turn != "" { // passages that the turn had and has no more
		for n := len(c.passages) + len(c.gone); ; n++ {
			id := s.ix.hash(storage.TurnMemoryID(c.turn, n))
			if !v.Knows(id) {
				break
			}
			e.unwant(s, id)
		}
	}
	e.holdVectors(s, true)
	if v.Queued() {
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
	if at, ok := s.vec.all.Find(id); ok {
		s.vec.untidy[at.Segment] = true
	}
	s.vec.all.Remove(id)
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
	err := vector.DeleteRecords(ctx, e.vec.local, remove)
	if err == nil {
		err = vector.PutRecords(ctx, e.vec.local, put)
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
	held := s.vec.all.InSegments(taken)
	for n := range taken {
		if r, entries := e.segmentRecord(s, n, held[n]); entries > 0 {
			put = append(put, r)
		} else {
			remove = append(remove, r.Ref())
		}
	}
	return put, remove, taken
}

// segmentRecord returns the record of a segment with these entries. It expires when the last of their memories does. The caller holds the
// scope's lock.
func (e *Engine) segmentRecord(s *scopeIndex, number uint32, lists ...[]vector.Entry) (r storage.Record, entries int) {
	seg := vector.Segment{Number: number, Model: e.cfg.Vectors.Embedder.Model(), Dim: s.vec.all.Dim()}
	r = storage.Record{Bucket: storage.BucketIndex, Scope: s.scope, Key: vector.Key(number)}
	forever := false
	for _, list := range lists {
		for _, entry := range list {
			seg.Add(entry.Mark, entry.Numbers)
			if i, ok := s.ix.memoryByHash(entry.ID); ok {
				at := s.ix.expires(i)
				forever = forever || at == 0
				r.ExpiresAt = max(r.ExpiresAt, at)
			}
		}
	}
	if forever {
		r.ExpiresAt = 0
	}
	if seg.Len() > 0 {
		r.Value = seg.Value()
	}
	return r, seg.Len()
}
