package recall

import (
	"context"
	"time"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

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
