package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// Engine recalls. All methods are safe for concurrent use; scopes do not wait for one another.
type Engine struct {
	cfg      Config
	src      Source
	log      *slog.Logger
	tracer   trace.Tracer // nil: silent
	analyzer *text.Analyzer
	seed     uint64
	scratch  sync.Pool // *scratch
	analyses sync.Pool // *analysis
	queries  sync.Pool // *resolvedQuery
	works    sync.Pool // *workspace

	spanOptions []trace.SpanStartOption

	scopes sync.Map // storage.Scope -> *scope
	held   atomic.Int64
	clock  atomic.Int64 // counts uses, for the least recently used

	evict sync.Mutex // one eviction at a time
	slots chan struct{}

	rebuilding chan struct{} // one rebuild at a time

	life   context.Context // of the background loads
	stop   context.CancelFunc
	mu     sync.Mutex // guards closed and loads.Add
	closed bool
	loads  sync.WaitGroup

	snapshots      SnapshotStore // nil: none are kept
	evictedIndexes chan evicted
	unwritten      atomic.Int64 // bytes of them and of the one that is being written; they count as held
	erasing        erasures
	staleScopes    map[storage.Scope]struct{} // guarded by mu

	loaded, uncoded, failed, evicted, omitted, damaged, restored, rejected, saved atomic.Int64

	omittedTold, failedTold seldom

	vectors *vectorKeeper
}

// errClosed is what a closed engine answers.
var errClosed = fmt.Errorf("recall: engine closed: %w", storage.ErrUnavailable)

// New returns an engine that loads indexes from src, and keeps there snapshots of them if it is a SnapshotStore, and
// vectors if it is a storage.Local. A nil log or tp is silent. It starts nothing; loads that requests
// start are waited for by Close.
func New(cfg Config, src Source, log *slog.Logger, tp trace.TracerProvider) *Engine {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		cfg: cfg, src: src, log: log, analyzer: text.NewAnalyzer(cachedWords), seed: rand.Uint64(),
		slots: make(chan struct{}, max(cfg.MaxLoads, 1)), rebuilding: make(chan struct{}, 1),
	}
	if tp != nil {
		e.tracer = tp.Tracer(scopeName)
	}
	if s, ok := src.(SnapshotStore); ok && cfg.SnapshotAfter > 0 {
		e.snapshots, e.evictedIndexes, e.staleScopes = s, make(chan evicted, maxEvicted), map[storage.Scope]struct{}{}
	}
	query.Load() // not within a query
	e.spanOptions = []trace.SpanStartOption{trace.WithAttributes(attribute.String(attrOperation, spanSearch))}
	e.scratch.New = func() any { return new(scratch) }
	e.queries.New = func() any { return new(resolvedQuery) }
	e.works.New = func() any { return new(workspace) }
	e.analyses.New = func() any { return new(text.Analysis) }
	e.life, e.stop = context.WithCancel(context.Background())
	local, _ := src.(storage.Local)
	e.vectors = newVectorKeeper(e, local)
	return e
}

// Run keeps snapshots until ctx is done, then closes the engine.
func (e *Engine) Run(ctx context.Context) error {
	if e.snapshots != nil {
		e.keepSnapshots(ctx)
	}
	<-ctx.Done()
	e.Close()
	return nil
}

// Close stops the background loads, waits for them, and writes the snapshots that are due, for a few seconds at most.
// Requests then fail with an error that wraps storage.ErrUnavailable.
func (e *Engine) Close() {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.loads.Wait()
	if first && e.snapshots != nil {
		e.finishSnapshots()
	}
}

// background runs f unless the engine is closed. Close waits for it.
func (e *Engine) background(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.loads.Go(f)
	return true
}

// Stats are counters since the start, and what is held now.
type Stats struct {
	Scopes   int   // held now, those that are loading included
	Bytes    int64 // estimated heap of all indexes
	MaxBytes int64
	Loads    int64 // finished
	Uncoded  int64 // indexes now that were built and take more than they will, as their texts are not coded yet
	Failures int64 // loads that failed, and rebuilds
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
		Bytes: e.held.Load(), MaxBytes: e.cfg.MaxBytes, Loads: e.loaded.Load(), Uncoded: e.uncoded.Load(), Failures: e.failed.Load(),
		Evicted: e.evicted.Load(), Omitted: e.omitted.Load(), Damaged: e.damaged.Load(),
		Restored: e.restored.Load(), Rejected: e.rejected.Load(), Saved: e.saved.Load(),
	}
	s.Vectors = e.vectors.stats()
	e.scopes.Range(func(any, any) bool { s.Scopes++; return true })
	return s
}

// Recall finds the memories that matter for a request, best first. It returns ErrTimeout when the deadline passes first
// and an error wrapping storage.ErrUnavailable when the scope can't be loaded; an empty result means that nothing
// relevant is known.
func (e *Engine) Recall(ctx context.Context, req Request) (Result, error) {
	start := time.Now()
	if e.tracer == nil { // a span that nobody sees costs as much as two words of the query
		res, err := e.recall(ctx, &req, start)
		if err != nil {
			res = Result{}
		}
		res.Took = time.Since(start)
		return res, err
	}
	ctx, span := e.tracer.Start(ctx, spanSearch, e.spanOptions...)
	defer span.End()
	res, err := e.recall(ctx, &req, start)
	res.Took = time.Since(start)
	if err != nil {
		span.SetStatus(codes.Error, reason(err))
		return Result{Took: res.Took}, err
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.Int(attrReturned, len(res.Memories)), attribute.Int(attrConsidered, res.Considered),
			attribute.Int(attrGated, res.Gated))
	}
	return res, nil
}

// reason names an error without quoting it.
func reason(err error) string {
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
	s := e.place(req.Scope)
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
		trace.SpanFromContext(ctx).SetAttributes(attribute.Bool(attrLoaded, warm))
	}
	var err error
	if !warm {
		if s, err = e.acquire(ctx, req.Scope); err != nil {
			return Result{}, err
		}
	}
	asked := e.vectors.startQuery(ctx, req)
	for {
		s.used.Store(e.clock.Add(1))
		if err := s.wait(ctx); err != nil {
			return Result{}, err
		}
		res, ok, err := e.searchScope(ctx, s, req, nil)
		if err != nil {
			return res, err
		}
		if ok {
			return e.withVectors(ctx, s, req, asked, res), nil
		}
		// Dropped or evicted since it was acquired.
		if s, err = e.acquire(ctx, req.Scope); err != nil {
			return Result{}, err
		}
	}
}

// searchScope searches under the scope's lock, by words and by the vector if one is given. It is not ok when there is no
// index any more.
func (e *Engine) searchScope(ctx context.Context, s *scopeIndex, req *Request, a *vectorQuery) (res Result, ok bool, err error) {
	if err := s.rlock(ctx); err != nil {
		return Result{}, false, err
	}
	defer s.mu.RUnlock()
	if s.ix == nil {
		return Result{}, false, nil
	}
	q := e.readQuery(req.words(), req.Previous, req.Now, s.ix.usualLanguage())
	q.project = projectHash(req.Project)
	if e.tracer != nil {
		trace.SpanFromContext(ctx).SetAttributes(attribute.Int(attrIndexed, s.ix.liveMems), attribute.Int(attrTerms, len(q.Terms)))
	}
	if len(q.Terms) == 0 && q.Profile == 0 { // nothing is asked
		return Result{Vectors: VectorsOff}, true, nil
	}
	if q.vector, err = e.vectors.likeness(s, a); err != nil {
		return Result{}, true, err
	}
	res, err = e.search(ctx, s.ix, q, req)
	q.reset()
	e.queries.Put(q)
	return res, true, err
}

// Add tells the engine of memories that the store has durably taken. With a turn they are the whole truth about it: what
// an earlier Add left of the turn goes. Without one each memory replaces the one with its ID. Memories that may never be
// returned (deleted, superseded, no longer valid, Trust 0) are removed. A scope that is not held is left alone: it will
// be loaded from the store when it is asked for.
func (e *Engine) Add(scope storage.Scope, turn string, ms []storage.Memory) {
	if slices.ContainsFunc(ms, func(m storage.Memory) bool { return !recallable(&m) }) {
		e.stale(scope) // a memory may have been deleted by its mark
	}
	v, ok := e.scopes.Load(scope)
	if !ok {
		return
	}
	e.apply(v.(*scopeIndex), e.prepare(turn, ms))
}

// Forget removes memories, and what the store has of their vectors. Unknown ids are ignored.
func (e *Engine) Forget(scope storage.Scope, ids ...string) {
	e.stale(scope)
	if v, ok := e.scopes.Load(scope); ok {
		e.apply(v.(*scopeIndex), change{gone: ids})
	}
	if len(ids) > 0 {
		e.vectors.forget(scope, ids...)
	}
}

// Drop forgets the whole scope, as after an erasure. A load under way is abandoned and its result thrown away.
func (e *Engine) Drop(scope storage.Scope) {
	if v, ok := e.scopes.LoadAndDelete(scope); ok {
		s := v.(*scopeIndex)
		s.abandon()
		e.release(s)
	}
	e.vectors.forget(scope) // an erasure has done so, but not what was written after it
}

// Loaded reports whether the scope's index is in memory.
func (e *Engine) Loaded(scope storage.Scope) bool {
	v, ok := e.scopes.Load(scope)
	return ok && v.(*scopeIndex).ready.Load()
}
