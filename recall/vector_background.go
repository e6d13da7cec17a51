package recall

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	scratch sync.Pool     // *nearScratch
	commit  sync.Mutex    // serialises changes of records; taken before a scope's lock

	mu      sync.Mutex
	queue   []*scopeIndex // each at most once, so it is no longer than the scopes held
	working bool

	used, late, failed, embedded, refused, omitted, stale, failures atomic.Int64
}

// scopeVectors is what a scope has of vectors. all, last and attached are guarded by the scope's lock.
type scopeVectors struct {
	all      *vectors // nil until the stored ones are read
	last     uint32   // number of the newest segment
	redone   bool     // read again for another dimension; once is enough
	queued   bool     // guarded by vectorWork.mu
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
	stored, err := e.readVectors(ctx, s.scope, dim)
	if err != nil {
		if e.life.Err() == nil {
			e.vec.failures.Add(1)
			e.log.Warn("recall vectors not read; words alone count until the scope is loaded again", "error", err)
		}
		return
	}
	if err := e.matchVectors(s, stored); err != nil {
		return
	}
	e.vec.commit.Lock()
	if err := deleteRecords(ctx, e.vec.local, stored.stale); err != nil {
		e.vec.failures.Add(1)
		e.log.Warn("recall vectors not deleted", "error", err)
	}
	e.vec.commit.Unlock()
	e.tidy(s)
	e.embedLater(s)
	e.log.Debug("recall vectors read", "segments", len(stored.segments), "stale", len(stored.stale), "took", time.Since(began))
}

// storedVectors are the segments of a scope that fit the settings.
type storedVectors struct {
	segments []segment
	at       map[uint64]entryAt // by stable hash of the id, the newest
	stale    []storage.RecordRef
	last     uint32
}

type entryAt struct{ segment, entry int }

func (e *Engine) readVectors(ctx context.Context, scope storage.Scope, dim int) (*storedVectors, error) {
	out := &storedVectors{at: map[uint64]entryAt{}}
	model := e.cfg.Vectors.Embedder.Model()
	bytes := 0
	err := eachVectorRecord(ctx, e.vec.local, scope, func(number uint32, r storage.Record) error {
		out.last = max(out.last, number)
		s, err := readSegment(number, r.Value)
		if err != nil || s.model != model || dim != 0 && s.dim != dim {
			e.vec.stale.Add(1)
			out.stale = append(out.stale, r.Ref())
			return nil
		}
		out.segments = append(out.segments, s)
		bytes += len(s.entries)
		for int64(bytes) > e.cfg.MaxScopeBytes { // they would not fit either
			bytes -= len(out.segments[0].entries)
			out.segments = slices.Delete(out.segments, 0, 1)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n := len(out.segments); n > 0 && dim == 0 {
		dim = out.segments[n-1].dim
		out.segments = slices.DeleteFunc(out.segments, func(s segment) bool {
			if s.dim == dim {
				return false
			}
			e.vec.stale.Add(1)
			out.stale = append(out.stale, storage.RecordRef{Bucket: storage.BucketIndex, Scope: scope, Key: segmentKey(s.number)})
			return true
		})
	}
	if len(out.stale) > 0 { // they are removed while new ones are written already
		out.last++
	}
	for i := range out.segments {
		for k := range out.segments[i].len() {
			id, _, _ := out.segments[i].entry(k)
			out.at[id] = entryAt{i, k}
		}
	}
	return out, nil
}

// matchVectors walks over the index, the newest memories first, a step at a time so that requests get in between.
// Memories that come meanwhile make themselves known.
func (e *Engine) matchVectors(s *scopeIndex, stored *storedVectors) error {
	all := newVectors()
	used := make([]int, len(stored.segments)) // entries that are some memory's
	var ix *index
	at := 0
	for {
		s.mu.Lock()
		if s.gone || s.ix == nil {
			s.mu.Unlock()
			return errGone
		}
		if s.vec.all != all { // the first step
			s.vec.all, s.vec.last, s.vec.untidy = all, stored.last, map[uint32]bool{}
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
			if _, ok := all.has(id); ok {
				continue
			}
			stable := stableHash(m.ID)
			if k, ok := stored.at[stable]; ok {
				seg := &stored.segments[k.segment]
				_, text, numbers := seg.entry(k.entry)
				if text == stableHash(m.Text) && all.put(id, mark{stable, text, seg.number}, toInt8(numbers)) {
					used[k.segment]++
					continue
				}
			}
			all.want(id)
		}
		full := e.vectorsFull(s)
		if full {
			e.vec.omitted.Add(int64(at))
			at = 0
		}
		done := at == 0
		if done {
			slices.Reverse(all.todo) // the newest are the most urgent
			// Of a scope too large for its bound some memories are in the store alone, so nothing is known to be gone.
			for i := range stored.segments {
				if ix.omitted == 0 && !full && used[i] < stored.segments[i].len() {
					s.vec.untidy[stored.segments[i].number] = true
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
	return e.indexBytes(s)+s.vec.all.bytes() > e.cfg.MaxScopeBytes
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
	if e.vectorsFull(s) && v.len() > 0 {
		room := max(e.cfg.MaxScopeBytes-e.indexBytes(s), 0)
		n := int(float64(v.len()) * 0.9 * float64(room) / float64(v.bytes()))
		when := func(id uint64) storage.Time {
			if turn, ok := s.ix.turnOf(id); ok {
				return s.ix.turns[turn].time
			}
			return 0
		}
		dropped, oldest := v.keep(min(n, v.len()*9/10), when)
		if !stay {
			some := v.len() > 0
			dropped += v.giveUp(func(id uint64) bool { return some && when(id) > oldest })
		}
		e.vec.omitted.Add(int64(dropped))
	}
	s.vec.bytes.Store(v.bytes())
	s.vec.count.Store(int64(v.len()))
	s.vec.wanting.Store(int64(v.wanting))
	e.hold(s, s.ix.bytes()+scopeOverhead)
}
