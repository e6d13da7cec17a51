package recall

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

// vectorKeeper gives the memories of loaded scopes their vectors, in the
// background: one worker takes the scopes with memories to embed in turn, a
// round of each, and ends when there are none.
//
// No vector of a forgotten memory stays in the store. A writer of records takes
// commit and then checks that the memories still exist. Forget takes the
// memories out of the index first, then takes commit and removes them from the
// records. So a late vector is either not written or removed afterwards. What a
// crash leaves behind is removed by the next load of the scope.
type vectorKeeper struct {
	engine  *Engine
	log     *slog.Logger
	local   storage.Local // nil: vectors are not kept
	scratch sync.Pool     // *vector.Scratch
	commit  sync.Mutex    // serialises changes of records; taken before a scope's lock

	mu      sync.Mutex
	queue   []*slot // each at most once, so it is no longer than the scopes held
	working bool

	used, late, failed, embedded, refused, omitted, stale, failures atomic.Int64
}

// scopeVectors is the part of a scope that belongs to its vectors. The scope's
// lock guards all, last, redone, untidy and attached.
type scopeVectors struct {
	all      *vector.Store // nil until the stored ones are read
	last     uint32        // number of the newest segment
	redone   bool          // read again for another dimension, which happens once
	queued   bool          // guarded by vectorKeeper.mu
	tidying  atomic.Bool
	untidy   map[uint32]bool // segments with vectors of memories that are gone
	bytes    atomic.Int64
	count    atomic.Int64
	wanting  atomic.Int64
	attached atomic.Bool // every memory is known to have a vector or to want one
}

const (
	roundTexts   = 64  // embedded before the next scope has its turn
	attachStep   = 256 // memories matched while the scope's lock is held
	storeTimeout = 30 * time.Second

	// The pause after a failure, which doubles.
	minEmbedPause, maxEmbedPause = time.Second, 5 * time.Minute
)

func newVectorKeeper(e *Engine, log *slog.Logger, local storage.Local) *vectorKeeper {
	return &vectorKeeper{engine: e, log: log, local: local, scratch: sync.Pool{New: func() any { return new(vector.Scratch) }}}
}

// embeds reports whether memories get vectors.
func (k *vectorKeeper) embeds() bool { return k.embedder() != nil && k.local != nil }

func (k *vectorKeeper) embedder() Embedder { return k.engine.cfg.Vectors.Embedder }

// recoverPanic keeps a panic in the background from ending the process.
func (k *vectorKeeper) recoverPanic() {
	if r := recover(); r != nil {
		k.failures.Add(1)
		k.log.Error("recall vectors: panic")
	}
}

// scopeLoaded is called when a scope has been loaded, by a load that Close
// waits for, with the scope's lock held.
func (k *vectorKeeper) scopeLoaded(s *slot) {
	if !k.embeds() {
		return
	}
	s.vec.all = nil
	k.engine.tasks.startNested(func() {
		defer k.recoverPanic()
		k.attach(s, 0)
	})
}

// scopeChanged is called when a scope's index has changed, with the scope's
// lock held.
func (k *vectorKeeper) scopeChanged(s *slot, c *change) {
	v := s.vec.all
	if v == nil {
		return
	}
	for _, id := range c.removed {
		s.vec.remove(s.ix.hash(id))
	}
	for i := range c.passages {
		m := c.passages[i].memory
		id := s.ix.hash(m.ID)
		if mark, ok := v.Find(id); ok && mark.Text == vector.Hash(m.Text) {
			continue
		}
		s.vec.remove(id)
		v.Want(id)
	}
	if c.turn != "" { // passages that the turn no longer has
		for n := len(c.passages) + len(c.removed); ; n++ {
			id := s.ix.hash(storage.TurnMemoryID(c.turn, n))
			if !v.Knows(id) {
				break
			}
			s.vec.remove(id)
		}
	}
	k.count(s, true)
	if v.Queued() {
		k.embedLater(s)
	}
	k.tidyLater(s)
}

// remove forgets the vector of a memory and notes the record that holds it.
func (v *scopeVectors) remove(id uint64) {
	if mark, ok := v.all.Find(id); ok {
		v.untidy[mark.Segment] = true
	}
	v.all.Remove(id)
}

// forget removes the stored vectors of forgotten memories, whether or not their
// scope is loaded and memories are embedded now. Without ids it removes all of
// the scope. The index has forgotten them already.
func (k *vectorKeeper) forget(scope storage.Scope, ids ...string) {
	if k.local == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	k.commit.Lock()
	defer k.commit.Unlock()
	if err := vector.Forget(ctx, k.local, scope, ids...); err != nil {
		k.failures.Add(1)
		k.log.Warn("stored vectors of forgotten memories not removed; the next load of the scope removes them", "error", err)
	}
}

// embedLater queues a scope for the worker, and starts the worker if there is
// none.
func (k *vectorKeeper) embedLater(s *slot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !s.vec.queued {
		s.vec.queued = true
		k.queue = append(k.queue, s)
	}
	if !k.working {
		k.working = k.engine.tasks.start(func() {
			defer k.recoverPanic()
			k.work()
		})
	}
}

// work embeds until nothing is left to embed. While the server fails, it tries
// again after ever longer pauses.
func (k *vectorKeeper) work() {
	finished := false
	defer func() { // closed, or a panic
		if !finished {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.working = false
		}
	}()
	pause := minEmbedPause
	for {
		s := k.nextScope()
		if s == nil {
			finished = true
			return
		}
		more, err := k.embedRound(s)
		if k.engine.tasks.ctx.Err() != nil {
			return
		}
		if more {
			k.embedLater(s)
		}
		if err == nil {
			pause = minEmbedPause
			continue
		}
		k.failures.Add(1)
		k.log.Warn("memories not embedded, trying again", "error", err, "in", pause.String())
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-k.engine.tasks.ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, maxEmbedPause)
	}
}

// nextScope takes the first scope from the queue. If there is none the worker
// ends, which is noted under the same lock.
func (k *vectorKeeper) nextScope() *slot {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		k.working = false
		return nil
	}
	s := k.queue[0]
	k.queue[0] = nil
	k.queue = k.queue[1:]
	s.vec.queued = false
	return s
}

func (k *vectorKeeper) stats() VectorStats {
	v := VectorStats{
		Used: k.used.Load(), Late: k.late.Load(), Failed: k.failed.Load(), Embedded: k.embedded.Load(),
		Refused: k.refused.Load(), Omitted: k.omitted.Load(), Stale: k.stale.Load(), Failures: k.failures.Load(),
	}
	k.engine.cache.each(func(held *slot) {
		s := &held.vec
		v.Held += s.bytes.Load()
		v.Vectors += s.count.Load()
		if v.Waiting += s.wanting.Load(); k.embeds() && !s.attached.Load() {
			v.Waiting++
		}
	})
	return v
}

// Embedder turns texts into vectors. recall/embed has one.
type Embedder interface {
	// Model names all that decides what the vectors are. Vectors of different
	// names are never compared.
	Model() string
	// Query returns the vector of a query, of length one. It fails when ctx
	// ends, at the latest.
	Query(ctx context.Context, text string) ([]float32, error)
	// Documents returns the vectors of texts in their order, nil for a text
	// that can't be embedded. It may take long.
	Documents(ctx context.Context, texts []string) ([][]float32, error)
}

// VectorConfig sets what embeddings add to the search. Without an Embedder they
// add nothing.
type VectorConfig struct {
	Embedder Embedder
	// Redact is applied to queries and memories before they are sent: rules may
	// have been added since a memory was stored. Without it no query is sent.
	Redact func(string) string
	// Weight is what the greatest likeness adds to a score, as a share of the
	// query's weight.
	Weight float64
	// Gate is how far, in standard deviations, the likeness of the best memory
	// must exceed the scope's mean for memories to be returned that words alone
	// would not bring. 0 means that words alone decide.
	Gate float64
}

// VectorStats counts since the start, and describes what is held now.
type VectorStats struct {
	Held     int64 // bytes of the vectors in memory, a part of Stats.Bytes
	Vectors  int64 // in memory
	Waiting  int64 // memories of the scopes held that have no vector yet; one for each scope whose vectors are not read yet
	Used     int64 // requests by status
	Late     int64
	Failed   int64
	Embedded int64 // memories embedded and stored
	Refused  int64 // memories that the server refused to embed
	Omitted  int64 // vectors left out of scopes that exceed MaxScopeBytes
	Stale    int64 // stored segments that were damaged, or of another model or dimension, and deleted
	Failures int64 // failed attempts to embed, to read or to store vectors
}
