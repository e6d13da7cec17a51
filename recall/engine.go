package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/telemetry"
	"github.com/remora-proxy/remora/text"
)

// Engine recalls memories. All methods are safe for concurrent use, and a
// request never waits for another scope's.
//
//	Recall ----> cache ---> slot ---> index
//	               |          ^
//	               | miss     | publish
//	               v          |
//	            loader -------+---- snapshotter <--- evicted and changed indexes
//	                          |
//	Add, Forget --------------+---> rebuilder, vectors
type Engine struct {
	cfg      Config
	tracer   trace.Tracer // nil if spans are off
	spanned  []trace.SpanStartOption
	analyzer *text.Analyzer
	searcher *searcher
	works    sync.Pool // *workspace

	tasks     *tasks
	cache     *scopeCache
	reader    *memoryReader
	loader    *loader
	rebuilder *rebuilder
	snapshots *snapshotter // nil if none are kept
	vectors   *vectorKeeper
	pauses    writePauses
}

var errClosed = fmt.Errorf("recall: engine closed: %w", storage.ErrUnavailable)

// New returns an engine that loads indexes from src. It keeps snapshots in src
// if that is a SnapshotStore, and vectors if it is a storage.Local. log and tp
// may be nil. New starts nothing; Close waits for what requests start.
func New(cfg Config, src Source, log *slog.Logger, tp trace.TracerProvider) *Engine {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{cfg: cfg, analyzer: text.NewAnalyzer(cachedWords), tasks: newTasks()}
	if tp != nil {
		e.tracer = tp.Tracer(tracerName)
		e.spanned = []trace.SpanStartOption{trace.WithAttributes(telemetry.AttrOperation.String(telemetry.SpanSearch))}
	}
	e.searcher = newSearcher(&e.cfg.SearchConfig, e.analyzer)
	e.works.New = func() any { return new(workspace) }
	e.cache = &scopeCache{cfg: &e.cfg}
	if store, ok := src.(SnapshotStore); ok && cfg.SnapshotAfter > 0 {
		e.snapshots = &snapshotter{
			cfg: &e.cfg, store: store, log: log, analyzer: e.analyzer, ctx: e.tasks.ctx, cache: e.cache, pauses: &e.pauses,
			evicted: make(chan evictedIndex, maxEvicted), stale: map[storage.Scope]struct{}{},
		}
		e.cache.onEvict = e.snapshots.keepEvicted
	}
	local, _ := src.(storage.Local)
	e.vectors = newVectorKeeper(e, log, local)
	e.reader = newMemoryReader(e.analyzer, e.snapshots != nil)
	e.rebuilder = &rebuilder{cfg: &e.cfg, log: log, tasks: e.tasks, cache: e.cache, vectors: e.vectors, running: make(chan struct{}, 1)}
	e.loader = &loader{
		cfg: &e.cfg, src: src, log: log, seed: rand.Uint64(), tasks: e.tasks, cache: e.cache, reader: e.reader,
		rebuilder: e.rebuilder, snapshots: e.snapshots, vectors: e.vectors, running: make(chan struct{}, max(cfg.MaxLoads, 1)),
	}
	return e
}

// Run keeps snapshots until ctx is done, then closes the engine.
func (e *Engine) Run(ctx context.Context) error {
	if e.snapshots != nil {
		e.snapshots.run(ctx)
	}
	<-ctx.Done()
	e.Close()
	return nil
}

// Close stops the background work, waits for it, and writes the snapshots that
// are due within a few seconds. Later requests fail with an error that wraps
// storage.ErrUnavailable.
func (e *Engine) Close() {
	if first := e.tasks.close(); first && e.snapshots != nil {
		e.snapshots.finish()
	}
}

// Stats are counters since the start, and gauges of what is held now.
type Stats struct {
	Scopes   int   // held now, including those that are loading
	Bytes    int64 // estimated size of all indexes
	MaxBytes int64
	Loads    int64 // finished
	Uncoded  int64 // indexes now that will become smaller, as their texts are not coded yet
	Failures int64 // failed loads and rebuilds
	Evicted  int64 // scopes dropped to keep MaxBytes
	Omitted  int64 // memories left out of scopes larger than MaxScopeBytes
	Damaged  int64 // records that the store could not read
	Restored int64 // loads from a snapshot
	Rejected int64 // snapshots that were damaged or of another version
	Saved    int64 // snapshots written
	Vectors  VectorStats
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := Stats{
		Bytes: e.cache.bytes.Load(), MaxBytes: e.cfg.MaxBytes, Evicted: e.cache.evicted.Load(),
		Loads: e.loader.loaded.Load(), Uncoded: e.loader.uncoded.Load(), Damaged: e.loader.damaged.Load(),
		Failures: e.loader.failed.Load() + e.rebuilder.failed.Load(), Omitted: e.rebuilder.omitted.Load(),
		Vectors: e.vectors.stats(),
	}
	if p := e.snapshots; p != nil {
		s.Restored, s.Rejected, s.Saved = p.restored.Load(), p.rejected.Load(), p.saved.Load()
	}
	e.cache.each(func(*slot) { s.Scopes++ })
	return s
}

// tracerName is the name of the instrumentation.
const tracerName = "github.com/remora-proxy/remora/recall"

// Recall finds the memories that are relevant to a request, best first. It
// returns ErrTimeout if the deadline passes first, and an error that wraps
// storage.ErrUnavailable if the scope can't be loaded. An empty result means
// that nothing relevant is known.
func (e *Engine) Recall(ctx context.Context, req Request) (Result, error) {
	start := time.Now()
	if e.tracer == nil { // an unrecorded span costs as much as two words of the query
		res, err := e.recall(ctx, &req, start)
		if err != nil {
			res = Result{}
		}
		res.Took = time.Since(start)
		return res, err
	}
	ctx, span := e.tracer.Start(ctx, telemetry.SpanSearch, e.spanned...)
	defer span.End()
	res, err := e.recall(ctx, &req, start)
	res.Took = time.Since(start)
	if err != nil {
		span.SetAttributes(telemetry.AttrError.String(errorName(err)))
		span.SetStatus(codes.Error, "")
		return Result{Took: res.Took}, err
	}
	if span.IsRecording() {
		span.SetAttributes(telemetry.AttrRecords.Int(len(res.Memories)), telemetry.AttrConsidered.Int(res.Considered),
			telemetry.AttrGated.Int(res.Gated))
	}
	return res, nil
}

// errorName names an error without quoting it.
func errorName(err error) string {
	switch {
	case errors.Is(err, ErrTimeout):
		return "timeout"
	case errors.Is(err, storage.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "failed"
}

func (e *Engine) recall(ctx context.Context, req *Request, start time.Time) (Result, error) {
	if err := req.Scope.Validate(); err != nil {
		return Result{}, fmt.Errorf("recall: %w", err)
	}
	s := e.cache.slot(req.Scope)
	deadline := e.cfg.Deadline
	warm := s.ready.Load()
	if !warm {
		deadline = max(e.cfg.FirstDeadline, deadline)
	}
	if at, ok := ctx.Deadline(); !ok || at.Sub(start) > deadline { // a timer costs as much as a word of the query
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, deadline, ErrTimeout)
		defer cancel()
	}
	if e.tracer != nil {
		trace.SpanFromContext(ctx).SetAttributes(telemetry.AttrLoaded.Bool(warm))
	}
	var err error
	if !warm {
		if s, err = e.loader.acquire(ctx, req.Scope); err != nil {
			return Result{}, err
		}
	}
	embedding := e.vectors.startQuery(ctx, req)
	for {
		e.cache.touch(s)
		if err := s.wait(ctx); err != nil {
			return Result{}, err
		}
		res, ok, err := e.searchSlot(ctx, s, req, nil)
		if err != nil {
			return res, err
		}
		if ok {
			return e.withVectors(ctx, s, req, embedding, res), nil
		}
		// The slot was dropped or evicted after it had been acquired.
		if s, err = e.loader.acquire(ctx, req.Scope); err != nil {
			return Result{}, err
		}
	}
}

// searchSlot searches under the slot's lock, by words and by a vector if one is
// given. ok is false if the slot has no index any more.
func (e *Engine) searchSlot(ctx context.Context, s *slot, req *Request, v *vectorQuery) (res Result, ok bool, err error) {
	if err := s.rlock(ctx); err != nil {
		return Result{}, false, err
	}
	defer s.mu.RUnlock()
	if s.ix == nil {
		return Result{}, false, nil
	}
	like, err := e.vectors.likeness(s, v)
	if err != nil {
		return Result{}, true, err
	}
	res, err = e.searcher.search(ctx, s.ix, req, like)
	if e.tracer != nil {
		trace.SpanFromContext(ctx).SetAttributes(telemetry.AttrIndexed.Int(s.ix.liveMems), telemetry.AttrTerms.Int(res.Terms))
	}
	return res, true, err
}

// Add updates the index with memories that the store has written durably. If
// turn is not empty they replace all memories of an earlier Add of the turn,
// otherwise each replaces the one with its ID. Memories that must not be
// returned (deleted, superseded, no longer valid, Trust 0) are removed. A scope
// that is not held is left alone; its next load reads the memories from the
// store.
func (e *Engine) Add(scope storage.Scope, turn string, ms []storage.Memory) {
	if slices.ContainsFunc(ms, func(m storage.Memory) bool { return !recallable(&m) }) {
		e.snapshots.markStale(scope)
	}
	if s, ok := e.cache.find(scope); ok {
		e.apply(s, e.reader.change(turn, ms))
	}
}

// Forget removes memories and their stored vectors. Unknown ids are ignored.
func (e *Engine) Forget(scope storage.Scope, ids ...string) {
	e.snapshots.markStale(scope)
	if s, ok := e.cache.find(scope); ok {
		e.apply(s, change{removed: ids})
	}
	if len(ids) > 0 {
		e.vectors.forget(scope, ids...)
	}
}

// Drop forgets a whole scope after its erasure. The result of a running load is
// discarded.
func (e *Engine) Drop(scope storage.Scope) {
	e.cache.drop(scope)
	e.vectors.forget(scope) // the erasure has removed them, except for later ones
}

// Loaded reports whether the scope's index is in memory. If it is not, since is
// when a load began that is under way; zero = there is none.
func (e *Engine) Loaded(scope storage.Scope) (loaded bool, since time.Time) {
	s, ok := e.cache.find(scope)
	if !ok || s.ready.Load() {
		return ok, time.Time{}
	}
	if began := s.loadBegan.Load(); began != 0 {
		since = time.Unix(0, began)
	}
	return false, since
}

// apply makes a change in the slot's index, or after its running load.
func (e *Engine) apply(s *slot, c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dropped:
	case s.loading != nil:
		if len(s.pending) <= maxPending {
			s.pending = append(s.pending, c)
		}
	case s.ix != nil:
		work := e.works.Get().(*workspace)
		s.ix.work = work
		s.rebuild.record(&c) // first: if the change panics, both indexes make it in part
		s.change(c)
		if work.small() {
			work.conversation.id = "" // it belongs to this index
			e.works.Put(work)
		}
		if e.rebuilder.refit(s); s.dropped {
			return
		}
		e.cache.countIndex(s)
		e.vectors.scopeChanged(s, &c)
	}
}
