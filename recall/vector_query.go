package recall

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/telemetry"
)

// vectorQuery is the embedding of one request's query, which is made while
// words are searched for.
type vectorQuery struct {
	done   chan struct{}
	vector []float32
	err    error

	words Result // found by words alone
}

// startQuery starts to embed the query of a request, and returns nil if there
// are no embeddings or no words. It sends what the search reads, redacted. The
// last tenth of the deadline is kept for the search with the vector.
func (k *vectorKeeper) startQuery(ctx context.Context, req *Request) *vectorQuery {
	e, c := k.engine, &k.engine.cfg.Vectors
	if c.Embedder == nil || c.Redact == nil || c.Weight == 0 && c.Gate == 0 {
		return nil
	}
	text := query.HeadAndTail(req.words())
	if words := strings.Fields(text); len(words) == 0 {
		return nil
	} else if len(words) < e.cfg.BorrowTerms && req.Previous != nil && e.cfg.BorrowWeight > 0 {
		if previous := req.Previous(); previous != "" {
			text = query.HeadAndTail(HumanWords(previous)) + "\n" + text
		}
	}
	a := &vectorQuery{done: make(chan struct{})}
	started := e.tasks.start(func() {
		defer close(a.done)
		defer func() {
			if recover() != nil {
				a.err = errors.New("embed query: panic")
			}
		}()
		queryCtx := ctx
		if at, ok := ctx.Deadline(); ok {
			short, cancel := context.WithTimeout(ctx, time.Until(at)*9/10)
			defer cancel()
			queryCtx = short
		}
		a.vector, a.err = c.Embedder.Query(queryCtx, c.Redact(text))
	})
	if !started {
		return nil
	}
	return a
}

// withVectors waits for the query's vector and searches again with it. If
// anything goes wrong the result is what words have found.
func (e *Engine) withVectors(ctx context.Context, s *slot, req *Request, a *vectorQuery, words Result) Result {
	if a == nil || words.Vectors == VectorsOff {
		words.Vectors = VectorsOff
		return words
	}
	req.Into = nil // it holds words
	res, status := e.fuse(ctx, s, req, a, words)
	res.Vectors = status
	switch status {
	case VectorsUsed:
		e.vectors.used.Add(1)
	case VectorsLate:
		e.vectors.late.Add(1)
	case VectorsFailed:
		e.vectors.failed.Add(1)
	}
	if e.tracer != nil {
		trace.SpanFromContext(ctx).SetAttributes(telemetry.AttrVectors.String(string(status)))
	}
	return res
}

func (e *Engine) fuse(ctx context.Context, s *slot, req *Request, a *vectorQuery, words Result) (Result, VectorStatus) {
	if s.vec.count.Load() == 0 {
		return words, VectorsNone // no reason to wait
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return words, VectorsLate
	}
	switch {
	case errors.Is(a.err, context.DeadlineExceeded), errors.Is(a.err, context.Canceled):
		return words, VectorsLate
	case a.err != nil:
		return words, VectorsFailed
	}
	a.words = words
	res, ok, err := e.searchSlot(ctx, s, req, a)
	switch {
	case errors.Is(err, errVectorDimension):
		e.vectors.attachAgain(s, len(a.vector))
		return words, VectorsFailed
	case err != nil:
		return words, VectorsLate
	case !ok:
		return words, VectorsNone
	}
	return res, VectorsUsed
}

var errVectorDimension = errors.New("query and memories have vectors of different dimensions")

// likeness compares the query's vector with those of a scope. The caller holds
// the scope's lock for reading.
func (k *vectorKeeper) likeness(s *slot, a *vectorQuery) (*likeness, error) {
	if a == nil {
		return nil, nil
	}
	v := s.vec.all
	if v == nil || v.Len() == 0 {
		return nil, nil
	}
	if v.Dim() != len(a.vector) {
		return nil, errVectorDimension
	}
	scratch := k.scratch.Get().(*vector.Scratch)
	defer k.scratch.Put(scratch)
	cfg := &k.engine.cfg.Vectors
	found := &likeness{z: map[int32]float64{}, weight: cfg.Weight, gate: cfg.Gate, words: a.words}
	for _, near := range v.Nearest(a.vector, scratch) {
		if turn, ok := s.ix.turnOf(near.ID); ok {
			found.z[turn] = max(found.z[turn], near.Z)
		}
	}
	return found, nil
}
