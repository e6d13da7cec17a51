package recall

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

// embedRound embeds some memories of a scope and stores their vectors. It
// reports whether memories are left.
func (k *vectorKeeper) embedRound(s *slot) (more bool, err error) {
	made, texts := k.textsToEmbed(s)
	if len(made) == 0 {
		return false, nil
	}
	ids := make([]uint64, len(made))
	for i := range made {
		ids[i] = made[i].ID
	}
	sent := texts
	if redact := k.engine.cfg.Vectors.Redact; redact != nil { // rules may have been added since they were stored
		sent = make([]string, len(texts))
		for i, t := range texts {
			sent[i] = redact(t)
		}
	}
	vectors, err := k.embedder().Documents(k.engine.tasks.ctx, sent)
	if err == nil && len(vectors) != len(texts) {
		err = errors.New("embedder: not as many vectors as texts")
	}
	if err != nil {
		return k.requeue(s, ids), err
	}
	for i, v := range vectors {
		if v != nil {
			made[i].Numbers = vector.Quantize(v)
		}
	}
	err = k.store(s, made)
	if errors.Is(err, errVectorDimension) {
		i := slices.IndexFunc(vectors, func(v []float32) bool { return v != nil })
		k.attachAgain(s, len(vectors[i]))
	}
	return k.requeue(s, ids), err
}

// textsToEmbed takes the next wanted memories of a scope, as entries without
// numbers, and their texts.
func (k *vectorKeeper) textsToEmbed(s *slot) (entries []vector.Entry, texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasVectors() {
		return nil, nil
	}
	v := s.vec.all
	for _, id := range v.Next(roundTexts) {
		i, ok := s.ix.memoryByHash(id)
		if !ok { // dropped from the index since
			v.Remove(id)
			continue
		}
		m := s.ix.memory(i, s.scope)
		entries = append(entries, vector.Entry{ID: id, Mark: vector.Mark{Memory: vector.Hash(m.ID), Text: vector.Hash(m.Text)}})
		texts = append(texts, m.Text)
	}
	s.vec.wanting.Store(int64(v.Wanting()))
	return entries, texts
}

// hasVectors reports whether the scope is loaded and its stored vectors are
// read. The caller holds the scope's lock.
func (s *slot) hasVectors() bool { return !s.dropped && s.ix != nil && s.vec.all != nil }

// requeue puts back the memories that got no vector, and reports whether any
// are queued.
func (k *vectorKeeper) requeue(s *slot, ids []uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasVectors() {
		return false
	}
	s.vec.all.Requeue(ids)
	return s.vec.all.Queued()
}

// store writes vectors durably, then uses them. Vectors whose memory is gone,
// or has another text by now, are not written.
func (k *vectorKeeper) store(s *slot, made []vector.Entry) error {
	e := k.engine
	done, ok := e.pauses.beginWrite(e.tasks.ctx, s.scope)
	if !ok {
		return e.tasks.ctx.Err()
	}
	defer done()
	k.commit.Lock()
	defer k.commit.Unlock()
	records, err := k.newRecords(s, made)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.tasks.ctx, storeTimeout)
	defer cancel()
	if err := vector.PutRecords(ctx, k.local, records); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasVectors() {
		return nil
	}
	v := s.vec.all
	for i := range made {
		m := &made[i]
		switch wanted := s.stillWants(m); {
		case wanted && m.Numbers == nil:
			v.Refuse(m.ID)
			k.refused.Add(1)
		case wanted && v.Put(m.ID, m.Mark, m.Numbers):
			k.embedded.Add(1)
			s.vec.last = max(s.vec.last, m.Mark.Segment)
		case m.Mark.Segment != 0: // the memory went while its vector was written
			s.vec.untidy[m.Mark.Segment] = true
			s.vec.last = max(s.vec.last, m.Mark.Segment)
		}
	}
	k.count(s, false)
	k.tidyLater(s)
	return nil
}

// stillWants reports whether a memory exists, has the same text and has no
// vector yet. The caller holds the scope's lock.
func (s *slot) stillWants(m *vector.Entry) bool {
	if !s.vec.all.Wants(m.ID) {
		return false
	}
	i, ok := s.ix.memoryByHash(m.ID)
	return ok && vector.Hash(s.ix.memory(i, s.scope).Text) == m.Mark.Text
}

// newRecords gives every vector that is still wanted a segment, which it writes
// to the vector's mark, and returns the records. It fills the newest segment
// first.
func (k *vectorKeeper) newRecords(s *slot, made []vector.Entry) ([]storage.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.hasVectors() {
		return nil, nil
	}
	v := s.vec.all
	number, room := s.vec.last, 0
	var held []vector.Entry // in the segment already
	if number > 0 {
		held = v.InSegments(map[uint32]bool{number: true})[number]
		room = vector.SegmentEntries - len(held)
	}
	var records []storage.Record
	var added []vector.Entry
	flush := func() {
		if len(added) > 0 {
			r, _ := k.record(s, number, held, added)
			records = append(records, r)
		}
		held, added = nil, nil
	}
	for i := range made {
		m := &made[i]
		if m.Numbers == nil || !s.stillWants(m) {
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
		added = append(added, *m)
	}
	flush()
	return records, nil
}

// record returns the record of a segment with these entries, and their number.
// It expires when the last of their memories does. The caller holds the scope's
// lock.
func (k *vectorKeeper) record(s *slot, number uint32, lists ...[]vector.Entry) (r storage.Record, entries int) {
	seg := vector.Segment{Number: number, Model: k.embedder().Model(), Dim: s.vec.all.Dim()}
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

// tidyLater tidies in the background if that is necessary. The caller holds the
// scope's lock.
func (k *vectorKeeper) tidyLater(s *slot) {
	if len(s.vec.untidy) == 0 || s.vec.tidying.Swap(true) {
		return
	}
	if !k.engine.tasks.start(func() { defer k.recoverPanic(); k.tidy(s) }) {
		s.vec.tidying.Store(false)
	}
}

// tidy rewrites the segments that hold vectors of memories that are gone.
func (k *vectorKeeper) tidy(s *slot) {
	e := k.engine
	done, ok := e.pauses.beginWrite(e.tasks.ctx, s.scope)
	if !ok {
		return
	}
	defer done()
	k.commit.Lock()
	defer k.commit.Unlock()
	s.vec.tidying.Store(false)
	put, remove, segments := k.takeUntidy(s)
	if len(segments) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(e.tasks.ctx, storeTimeout)
	defer cancel()
	err := vector.DeleteRecords(ctx, k.local, remove)
	if err == nil {
		err = vector.PutRecords(ctx, k.local, put)
	}
	if err == nil {
		return
	}
	k.failures.Add(1)
	k.log.Warn("vectors of removed memories are still stored; trying again with the next change", "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range segments {
		s.vec.untidy[n] = true
	}
}

// takeUntidy returns the segments to tidy and what is to become of their
// records.
func (k *vectorKeeper) takeUntidy(s *slot) (put []storage.Record, remove []storage.RecordRef, segments map[uint32]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasVectors() || len(s.vec.untidy) == 0 {
		return nil, nil, nil
	}
	segments, s.vec.untidy = s.vec.untidy, map[uint32]bool{}
	held := s.vec.all.InSegments(segments)
	for n := range segments {
		if r, entries := k.record(s, n, held[n]); entries > 0 {
			put = append(put, r)
		} else {
			remove = append(remove, r.Ref())
		}
	}
	return put, remove, segments
}

// attachAgain starts over with vectors of another dimension, as when the server
// has another model under the same name.
func (k *vectorKeeper) attachAgain(s *slot, dim int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped || s.vec.redone {
		return
	}
	s.vec.redone = true
	k.log.Warn("recall vectors: the model's dimension has changed, embedding all memories again", "dimension", dim)
	k.engine.tasks.start(func() {
		defer k.recoverPanic()
		k.attach(s, dim)
	})
}

// attach reads the stored vectors of a scope and finds out which memories have
// none. dim is the dimension that they must have, 0 for that of the newest.
func (k *vectorKeeper) attach(s *slot, dim int) {
	e := k.engine
	began := time.Now()
	leave, ok := e.loader.enter(e.tasks.ctx)
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := context.WithTimeout(e.tasks.ctx, e.cfg.LoadTimeout)
	defer cancel()
	stored, err := vector.ReadStored(ctx, k.local, s.scope, k.embedder().Model(), dim, e.cfg.MaxScopeBytes)
	if err != nil {
		if e.tasks.ctx.Err() == nil {
			k.failures.Add(1)
			k.log.Warn("recall vectors not read; only words count until the scope is loaded again", "error", err)
		}
		return
	}
	k.stale.Add(int64(len(stored.Outdated)))
	if err := k.match(s, stored); err != nil {
		return
	}
	k.commit.Lock()
	if err := vector.DeleteRecords(ctx, k.local, stored.Outdated); err != nil {
		k.failures.Add(1)
		k.log.Warn("outdated recall vectors not deleted", "error", err)
	}
	k.commit.Unlock()
	k.tidy(s)
	k.embedLater(s)
	k.log.Debug("recall vectors read", "segments", len(stored.Segments), "outdated", len(stored.Outdated), "took", time.Since(began))
}

// match walks over the index, the newest memories first, a step at a time so
// that requests get in between. It takes the stored vectors of memories that
// still have the same text and notes those that have none. Memories that are
// added meanwhile come by scopeChanged.
func (k *vectorKeeper) match(s *slot, stored *vector.Stored) error {
	all := vector.New()
	used := make([]int, len(stored.Segments)) // entries that belong to a memory
	var ix *index
	at := 0
	for {
		s.mu.Lock()
		if s.dropped || s.ix == nil {
			s.mu.Unlock()
			return errDropped
		}
		if s.vec.all != all { // the first step
			s.vec.all, s.vec.last, s.vec.untidy = all, stored.Last, map[uint32]bool{}
		}
		if ix != s.ix { // rebuilt, or the first step
			ix, at = s.ix, len(s.ix.mems)
		}
		for stop := max(at-attachStep, 0); at > stop && !k.full(s); {
			at--
			if ix.turns[ix.mems[at].turn].flags&turnDead != 0 {
				continue
			}
			m := ix.memory(int32(at), s.scope)
			id := ix.hash(m.ID)
			if _, ok := all.Find(id); ok {
				continue
			}
			if segment, mark, numbers, ok := stored.Find(m.ID, m.Text); ok && all.Put(id, mark, numbers) {
				used[segment]++
				continue
			}
			all.Want(id)
		}
		full := k.full(s)
		if full {
			k.omitted.Add(int64(at))
			at = 0
		}
		done := at == 0
		if done {
			all.ReverseQueue() // the newest are the most urgent
			// If the scope is too large for its limit, some memories are in the
			// store alone, so no entry is known to be superfluous.
			for i := range stored.Segments {
				if ix.omitted == 0 && !full && used[i] < stored.Segments[i].Len() {
					s.vec.untidy[stored.Segments[i].Number] = true
				}
			}
			s.vec.attached.Store(true)
		}
		k.count(s, true)
		s.mu.Unlock()
		if done {
			return nil
		}
	}
}

// full reports whether the scope has no room for more vectors. The caller holds
// its lock.
func (k *vectorKeeper) full(s *slot) bool {
	return k.indexBytes(s)+s.vec.all.Bytes() > k.engine.cfg.MaxScopeBytes
}

// indexBytes returns the size of the scope's index. During a rebuild it is the
// size expected afterwards, or an index beyond its limit would leave no room
// for vectors meanwhile. The caller holds the scope's lock.
func (k *vectorKeeper) indexBytes(s *slot) int64 {
	if s.rebuild != nil {
		return min(s.ix.bytes(), k.engine.cfg.MaxScopeBytes/10*9)
	}
	return s.ix.bytes()
}

// count updates what the scope's vectors count for, after dropping the oldest
// if they take too much. Unless all that wait must stay, those that are older
// than what is left are dropped, too: once embedded they would be dropped the
// next time. Memories that came while older ones were being embedded keep their
// place. The caller holds the scope's lock.
func (k *vectorKeeper) count(s *slot, keepWaiting bool) {
	e, v := k.engine, s.vec.all
	if k.full(s) && v.Len() > 0 {
		room := max(e.cfg.MaxScopeBytes-k.indexBytes(s), 0)
		n := int(float64(v.Len()) * 0.9 * float64(room) / float64(v.Bytes()))
		when := func(id uint64) storage.Time {
			if turn, ok := s.ix.turnOf(id); ok {
				return s.ix.turns[turn].time
			}
			return 0
		}
		dropped, oldest := v.Keep(min(n, v.Len()*9/10), when)
		if !keepWaiting {
			some := v.Len() > 0
			dropped += v.GiveUp(func(id uint64) bool { return some && when(id) > oldest })
		}
		k.omitted.Add(int64(dropped))
	}
	s.vec.bytes.Store(v.Bytes())
	s.vec.count.Store(int64(v.Len()))
	s.vec.wanting.Store(int64(v.Wanting()))
	e.cache.countIndex(s)
}
