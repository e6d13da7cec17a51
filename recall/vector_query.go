package recall

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/recall/vector"
)

// asked is the embedding of one request's query, under way since the request came.
type asked struct {
	done   chan struct{}
	vector []float32
	err    error

	words Result // what words alone have found
}

// ask starts to embed the query, beside the search by words; nil without embeddings or words. What is sent is what the
// search reads, redacted. The last tenth of the deadline is kept for the search with the vector.
func (e *Engine) ask(ctx context.Context, req *Request) *asked {
	c := &e.cfg.Vectors
	if c.Embedder == nil || c.Redact == nil || c.Weight == 0 && c.Gate == 0 {
		return nil
	}
	text := ends(req.words())
	if words := strings.Fields(text); len(words) == 0 {
		return nil
	} else if len(words) < e.cfg.BorrowTerms && req.Previous != nil && e.cfg.BorrowWeight > 0 {
		if previous := req.Previous(); previous != "" {
			text = ends(HumanWords(previous)) + "\n" + text
		}
	}
	a := &asked{done: make(chan struct{})}
	started := e.background(func() {
		defer close(a.done)
		defer func() {
			if recover() != nil {
				a.err = errors.New("embed query: panic")
			}
		}()
		within := ctx
		if at, ok := ctx.Deadline(); ok {
			short, cancel := context.WithTimeout(ctx, time.Until(at)*9/10)
			defer cancel()
			within = short
		}
		a.vector, a.err = c.Embedder.Query(within, c.Redact(text))
	})
	if !started {
		return nil
	}
	return a
}

// withVectors waits for the query's vector and searches again with it. Whatever goes wrong, what words have found stands.
func (e *Engine) withVectors(ctx context.Context, s *scopeIndex, req *Request, a *asked, words Result) Result {
	if a == nil || words.Vectors == VectorsOff {
		words.Vectors = VectorsOff
		return words
	}
	req.Into = nil // words is there
	res, status := e.fuse(ctx, s, req, a, words)
	res.Vectors = status
	switch status {
	case VectorsUsed:
		e.vec.used.Add(1)
	case VectorsLate:
		e.vec.late.Add(1)
	case VectorsFailed:
		e.vec.failed.Add(1)
	}
	if e.tracer != nil {
		trace.SpanFromContext(ctx).SetAttributes(attribute.String(attrVectors, string(status)))
	}
	return res
}

func (e *Engine) fuse(ctx context.Context, s *scopeIndex, req *Request, a *asked, words Result) (Result, VectorStatus) {
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
	res, ok, err := e.searchScope(ctx, s, req, a)
	switch {
	case errors.Is(err, errVectorDimension):
		e.reattach(s, len(a.vector))
		return words, VectorsFailed
	case err != nil:
		return words, VectorsLate
	case !ok:
		return words, VectorsNone
	}
	return res, VectorsUsed
}

var errVectorDimension = errors.New("query and memories have vectors of different dimensions")

// evidence is what the query's vector says about the turns of a scope.
type evidence struct {
	z      map[int32]float64 // standard deviations above the scope's mean, of each turn's best passage
	weight float64
	gate   float64
	words  Result // found by words alone
}

// evidence compares the vector with those of the scope. The caller holds the scope for reading.
func (e *Engine) evidence(s *scopeIndex, a *asked) (*evidence, error) {
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
	scratch := e.vec.scratch.Get().(*vector.Scratch)
	defer e.vec.scratch.Put(scratch)
	found := &evidence{z: map[int32]float64{}, weight: e.cfg.Vectors.Weight, gate: e.cfg.Vectors.Gate, words: a.words}
	for _, near := range v.Nearest(a.vector, scratch) {
		if turn, ok := s.ix.turnOf(near.ID); ok {
			found.z[turn] = max(found.z[turn], near.Z)
		}
	}
	return found, nil
}

// turnOf is the turn of a memory, by the hash of its id.
func (ix *index) turnOf(id uint64) (int32, bool) {
	i, ok := ix.memoryByHash(id)
	if !ok {
		return 0, false
	}
	return ix.mems[i].turn, true
}

// How likeness counts: below leastZ it says nothing, from mostZ on it is as good as it gets. Measured: see docs/recall.md.
const (
	leastZ = 2.0
	mostZ  = 6.0
)

// addend is what likeness adds to a turn's score, before the factors: a share of the query's weight, so that words and
// vectors are told on one scale whatever the model.
func (v *evidence) addend(n int32, q *query) float64 {
	if v == nil {
		return 0
	}
	return v.weight * q.mass * max(0, min((v.z[n]-leastZ)/(mostZ-leastZ), 1))
}

// addTo makes the turns that are like the query candidates beside those that rank found.
func (v *evidence) addTo(ix *index, q *query, s *scratch) {
	if v == nil {
		return
	}
	for n := range v.z {
		add := v.addend(n, q)
		if add <= 0 {
			continue
		}
		at := int32(len(s.cells))
		if s.chosen.has(n) {
			at = s.place(n)
		} else {
			s.cells = append(s.cells, cell{turn: n, brief: ix.briefs[n]})
		}
		c := &s.cells[at]
		if !c.found {
			c.found = true
			s.ranked = append(s.ranked, at)
		}
		c.score += float32(add)
	}
}

// relevance is that of the words alone, or more where the best turn stands out: at the vectors' gate it reaches the
// words' gate. by says that only vectors brought it there.
func (v *evidence) relevance(q *query, top []hit, gate float64) (r float64, by bool) {
	r = v.words.Relevance
	if v.gate <= 0 || q.idle {
		return r, false
	}
	most := 0.0
	for _, h := range top {
		most = max(most, v.z[h.turn])
	}
	if seen := min(gate*most/v.gate, 1); seen > r {
		return seen, r < gate && seen >= gate
	}
	return r, false
}

// standsOut reports whether a turn is worth returning where only vectors opened the gate: others than the best need not
// reach it, but half of it.
func (v *evidence) standsOut(n int32) bool { return v.z[n] >= v.gate/2 }
