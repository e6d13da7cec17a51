package recall

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

// vectorWork is the engine's part in embedding memories. It happens behind everything else: one worker takes the scopes
// with memories to embed in turn, a round of each, and leaves when there are none.
//
// What keeps vectors of forgotten memories away: whoever writes records holds commit and looks, after taking it, whether
// the memories are still wanted; whoever forgets first takes them out of the index, then takes commit and cleans the
// records. So a vector that lands late is either not written or cleaned after. What a crash leaves of that, the next load
// of the scope cleans.
type vectorWork struct {
	local   storage.Local // nil = vectors are not kept
	scratch sync.Pool     // *vector.Scratch
	commit  sync.Mutex    // serialises changes of records; taken before a scope's lock

	mu      sync.Mutex
	queue   []*scopeIndex // each at most once, so it is no longer than the scopes held
	working bool

	used, late, failed, embedded, refused, omitted, stale, failures atomic.Int64
}

// scopeVectors is what a scope has of vectors. all, last and attached are guarded by the scope's lock.
type scopeVectors struct {
	all      *vector.Store // nil until the stored ones are read
	last     uint32        // number of the newest segment
	redone   bool          // read again for another dimension; once is enough
	queued   bool          // guarded by vectorWork.mu
	tidying  atomic.Bool
	untidy   map[uint32]bool // segments that hold what is gone
	bytes    atomic.Int64
	count    atomic.Int64
	wanting  atomic.Int64
	attached atomic.Bool // all memories are known to have a vector, or to want one
}

const (
	roundTexts   = 64  // embedded before the next scope has its turn
	attachStep   = 256 // memories looked at while the scope's lock is held
	storePatient = 30 * time.Second

	firstRest, longestRest = time.Second, 5 * time.Minute // after a failure, doubling
)

// embeds reports whether memories get vectors.
func (e *Engine) embeds() bool { return e.cfg.Vectors.Embedder != nil && e.vec.local != nil }

// background runs f unless the engine is closed; Close waits for it.
func (e *Engine) background(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.loads.Go(f)
	return true
}

// vectorsLoaded follows a load. The caller holds the scope's lock.
func (e *Engine) vectorsLoaded(s *scopeIndex) {
	if e.embeds() {
		s.vec.all = nil
		e.attachLater(s, 0)
	}
}

func (e *Engine) attachLater(s *scopeIndex, dim int) {
	e.loads.Go(func() { // under a load that Close waits for, or from background
		defer e.survive()
		e.attach(s, dim)
	})
}

// survive keeps a panic of the background from ending the process.
func (e *Engine) survive() {
	if r := recover(); r != nil {
		e.vec.failures.Add(1)
		e.log.Error("recall vectors: panic")
	}
}

// reattach starts over with vectors of another dimension, as when the server has another model under the same name.
func (e *Engine) reattach(s *scopeIndex, dim int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.vec.redone {
		return
	}
	s.vec.redone = true
	e.log.Warn("recall vectors: the model's dimension has changed, memories are embedded anew", "dimension", dim)
	e.background(func() {
		defer e.survive()
		e.attach(s, dim)
	})
}

// attach reads the stored vectors of a scope and finds out which memories have none. dim is the dimension to take, 0 for
// that of the newest.
func (e *Engine) attach(s *scopeIndex, dim int) {
	began := time.Now()
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-e.life.Done():
		return
	}
	ctx, cancel := context.WithTimeout(e.life, e.cfg.LoadTimeout)
	defer cancel()
	stored, err := vector.ReadStored(ctx, e.vec.local, s.scope, e.cfg.Vectors.Embedder.Model(), dim, e.cfg.MaxScopeBytes)
	if err != nil {
		if e.life.Err() == nil {
			e.vec.failures.Add(1)
			e.log.Warn("recall vectors not read; words alone count until the scope is loaded again", "error", err)
		}
		return
	}
	e.vec.stale.Add(int64(len(stored.Outdated)))
	if err := e.matchVectors(s, stored); err != nil {
		return
	}
	e.vec.commit.Lock()
	if err := vector.DeleteRecords(ctx, e.vec.local, stored.Outdated); err != nil {
		e.vec.failures.Add(1)
		e.log.Warn("recall vectors not deleted", "error", err)
	}
	e.vec.commit.Unlock()
	e.tidy(s)
	e.embedLater(s)
	e.log.Debug("recall vectors read", "segments", len(stored.Segments), "outdated", len(stored.Outdated), "took", time.Since(began))
}

// matchVectors walks over the index, the newest memories first, a step at a time so that requests get in between.
// Memories that come meanwhile make themselves known.
func (e *Engine) matchVectors(s *scopeIndex, stored *vector.Stored) error {
	all := vector.New()
	used := make([]int, len(stored.Segments)) // entries that are some memory's
	var ix *index
	at := 0
	for {
		s.mu.Lock()
		if s.gone || s.ix == nil {
			s.mu.Unlock()
			return errGone
		}
		if s.vec.all != all { // the first step
			s.vec.all, s.vec.last, s.vec.untidy = all, stored.Last, map[uint32]bool{}
		}
		if ix != s.ix { // rebuilt, or the first step
			ix, at = s.ix, len(s.ix.mems)
		}
		for stop := max(at-attachStep, 0); at > stop && !e.vectorsFull(s); {
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
		full := e.vectorsFull(s)
		if full {
			e.vec.omitted.Add(int64(at))
			at = 0
		}
		done := at == 0
		if done {
			all.ReverseQueue() // the newest are the most urgent
			// Of a scope too large for its bound some memories are in the store alone, so nothing is known to be gone.
			for i := range stored.Segments {
				if ix.omitted == 0 && !full && used[i] < stored.Segments[i].Len() {
					s.vec.untidy[stored.Segments[i].Number] = true
				}
			}
			s.vec.attached.Store(true)
		}
		e.holdVectors(s, true)
		s.mu.Unlock()
		if done {
			return nil
		}
	}
}

// vectorsFull reports whether the scope has no room for more. The caller holds its lock.
func (e *Engine) vectorsFull(s *scopeIndex) bool {
	return e.indexBytes(s)+s.vec.all.Bytes() > e.cfg.MaxScopeBytes
}

// indexBytes is what the index takes; one beyond its bound, what it will when its rebuild has ended, or it would leave no room
// meanwhile. The caller holds the scope's lock.
func (e *Engine) indexBytes(s *scopeIndex) int64 {
	if s.anew != nil {
		return min(s.ix.bytes(), e.cfg.MaxScopeBytes/10*9)
	}
	return s.ix.bytes()
}

// holdVectors counts what the vectors take, and drops the oldest of a scope that takes too much. Of the memories that wait
// those go too that are older than what stays: embedded, they would be dropped the next time. Those that came while older
// ones were with the server keep their place. stay says that none of them goes. The caller holds the scope's lock.
func (e *Engine) holdVectors(s *scopeIndex, stay bool) {
	v := s.vec.all
	if e.vectorsFull(s) && v.Len() > 0 {
		room := max(e.cfg.MaxScopeBytes-e.indexBytes(s), 0)
		n := int(float64(v.Len()) * 0.9 * float64(room) / float64(v.Bytes()))
		when := func(id uint64) storage.Time {
			if turn, ok := s.ix.turnOf(id); ok {
				return s.ix.turns[turn].time
			}
			return 0
		}
		dropped, oldest := v.Keep(min(n, v.Len()*9/10), when)
		if !stay {
			some := v.Len() > 0
			dropped += v.GiveUp(func(id uint64) bool { return some && when(id) > oldest })
		}
		e.vec.omitted.Add(int64(dropped))
	}
	s.vec.bytes.Store(v.Bytes())
	s.vec.count.Store(int64(v.Len()))
	s.vec.wanting.Store(int64(v.Wanting()))
	e.hold(s, s.ix.bytes()+scopeOverhead)
}
