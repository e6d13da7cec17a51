package recall

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// SearchConfig is the part of Config that decides what a request finds.
type SearchConfig struct {
	// TopK is the largest number of memories in a result, 1 to MaxTopK.
	TopK int
	// BudgetTokens bounds the size of a result. Two bytes of a line count as a
	// token, which no common tokenizer exceeds on prose. If the memories would
	// take more, long ones are shortened and the last may be left out.
	BudgetTokens int
	// Scopes are searched for a request that names none.
	Scopes []SearchScope
	// Gate is the relevance, 0 to 1, that the best candidate must reach for
	// anything to be returned.
	Gate float64
	// MaxTerms bounds the terms of a query; the heaviest are kept.
	MaxTerms int
	// A message with fewer terms than BorrowTerms borrows those of the user's
	// previous message, at weight BorrowWeight.
	BorrowTerms  int
	BorrowWeight float64
	Weights      Weights
}

// defaultSearchConfig returns the measured defaults.
func defaultSearchConfig() SearchConfig {
	return SearchConfig{
		TopK:         8,
		BudgetTokens: 1000,
		Scopes:       []SearchScope{CurrentChat, Resources, AllUserMemory},
		Gate:         0.2,
		MaxTerms:     32,
		BorrowTerms:  3,
		BorrowWeight: 0.3,
		Weights:      DefaultWeights(),
	}
}

// validate returns all problems, joined, each with the key of its setting.
func (c SearchConfig) validate() error {
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
	}
	if c.TopK < 1 || c.TopK > MaxTopK {
		bad("topK", "must be 1..%d", MaxTopK)
	}
	if c.BudgetTokens < 1 {
		bad("budgetTokens", "must be > 0")
	}
	if len(c.Scopes) == 0 {
		bad("scopes", "must name at least one")
	}
	for i, s := range c.Scopes {
		if s != CurrentChat && s != Resources && s != AllUserMemory {
			bad(fmt.Sprintf("scopes[%d]", i), "must be current_chat, resources or all_user_memory")
		}
	}
	if !(c.Gate >= 0 && c.Gate <= 1) {
		bad("gate", "must be 0..1")
	}
	if c.MaxTerms < 1 || c.MaxTerms > 256 {
		bad("maxTerms", "must be 1..256")
	}
	if c.BorrowTerms < 0 {
		bad("borrowTerms", "must be >= 0")
	}
	if !(c.BorrowWeight >= 0 && c.BorrowWeight <= 1) {
		bad("borrowWeight", "must be 0..1")
	}
	return errors.Join(append(errs, c.Weights.validate()...)...)
}

// searcher searches indexes. It is safe for concurrent use.
type searcher struct {
	cfg      *SearchConfig
	analyzer *text.Analyzer
	scratch  sync.Pool // *scratch
	queries  sync.Pool // *resolvedQuery
}

// newSearcher returns a searcher that reads queries with analyzer, with which
// the texts of the indexes were read too.
func newSearcher(cfg *SearchConfig, analyzer *text.Analyzer) *searcher {
	query.Load() // so that no request has to wait for it
	e := &searcher{cfg: cfg, analyzer: analyzer}
	e.scratch.New = func() any { return new(scratch) }
	e.queries.New = func() any { return new(resolvedQuery) }
	return e
}

// search finds what answers a request. like is what vectors say, or nil. The
// caller holds the index for reading. Result.Vectors is VectorsOff if nothing
// is asked.
func (e *searcher) search(ctx context.Context, ix *index, req *Request, like *likeness) (Result, error) {
	q := e.readQuery(req.words(), req.Previous, req.Now, ix.usualLanguage())
	q.project, q.vector = projectHash(req.Project), like
	res, terms := Result{Vectors: VectorsOff}, len(q.Terms)
	var err error
	asks := terms > 0 || q.Profile != 0
	if asks {
		res, err = e.rankAndSelect(ctx, ix, q, req)
	}
	leftOut := req.NoPrivate && ix.private || req.Allow != nil || q.passes.leftOut
	q.reset()
	e.queries.Put(q)
	res.Terms = terms
	if err == nil && req.tells() && asks && leftOut {
		e.explainLeftOut(ctx, ix, req, like, &res)
	}
	return res, err
}

// rankAndSelect ranks turns and fills a result. The caller holds the index for
// reading.
func (e *searcher) rankAndSelect(ctx context.Context, ix *index, q *resolvedQuery, req *Request) (Result, error) {
	w := &e.cfg.Weights
	topK := req.TopK
	if topK <= 0 {
		topK = e.cfg.TopK
	}
	topK = min(topK, MaxTopK)
	resolver{ix}.resolve(q, e.cfg.MaxTerms, w)
	s := e.scratch.Get().(*scratch) // returned clean, or after a panic not at all
	f := &q.passes
	e.filter(ix, req, f)
	f.noQuoted = ix.quoted && !req.RolePlay && q.AboutUser && !text.NamesText(q.Text)
	top := ranking{ix: ranker{ix}, keep: topK * candidatesPerMemory}
	hits, known := finder{ix}.direct(q, f, s, req, topK)
	var constraints []constraintHit
	if !known && !req.NoGate {
		constraints = finder{ix}.constraints(q, f, s)
	}
	considered := len(hits)
	if top.hits = hits; !known {
		considered = top.ix.rank(q, w, s, topK*candidatesPerMemory, f)
		q.vector.addTo(ix, q, s)
		top.hits = top.ix.best(q, w, s, max(top.keep, coverTurns), f)
	}
	if ctx.Err() != nil {
		top.hits, constraints = nil, nil
	} else if !known {
		top.ix.sort(top.hits)
		first := top.hits[:min(len(top.hits), max(topK*phrasesPerMemory, coverTurns))]
		top.ix.phrases(q, w, first, s)
		top.ix.sort(first)
		if q.vector != nil || req.tells() {
			top.hits = top.hits[:min(len(top.hits), top.keep)]
		}
	}
	res := Result{Considered: considered}
	if len(top.hits) > 0 || len(constraints) > 0 {
		sel := selection{
			ix: ranker{ix}, scope: req.Scope, q: q, filter: f, topK: topK, into: req.Into, gate: e.cfg.Gate, weights: w,
			words: e.analyzer, explain: req.tells(), maxCut: req.maxCut(topK), lines: req.Lines, first: known, screen: req.Screen, res: res, scratch: s, hits: s.hits[:0], taken: s.taken[:0],
		}
		if sel.budget = bytesPerToken * req.BudgetTokens; sel.budget <= 0 {
			sel.budget = bytesPerToken * e.cfg.BudgetTokens
		}
		sel.room = sel.budget
		gate := e.cfg.Gate
		if req.NoGate || known {
			gate = 0
		}
		sel.takeConstraints(constraints)
		if len(top.hits) > 0 {
			sel.fill(ctx, &top, gate)
		}
		if !req.NoGate {
			sel.update()
		}
		sel.fit()
		sel.finish()
		s.hits, s.taken, res = sel.hits, sel.taken, sel.res
		for i := range res.Memories {
			switch {
			case !req.Explain || known:
			case sel.taken[i].updates:
				res.Memories[i].Parts = []Part{{Name: PartUpdate, Value: sel.hits[i].score}}
			case sel.taken[i].constraint:
				res.Memories[i].Parts = []Part{{Name: PartConstraint, Value: sel.hits[i].score}}
			default:
				res.Memories[i].Parts = sel.ix.explain(sel.hits[i], q, w)
			}
		}
	}
	s.clear()
	e.scratch.Put(s)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return res, nil
}

// tells reports whether the candidates that are not returned are asked for.
func (r *Request) tells() bool { return r.Cuts || r.Explain }

// maxCut returns how many candidates that are not returned are reported.
func (r *Request) maxCut(topK int) int {
	if r.Explain {
		return MaxTopK
	}
	return topK
}

// words returns the part of the newest message that a person typed.
func (r *Request) words() string {
	if r.HumanOnly {
		return r.Newest
	}
	return query.HumanWords(r.Newest)
}

// readQuery parses a request, of which newest is the human's words. It returns
// a query from the pool.
func (e *searcher) readQuery(newest string, previous func() string, now time.Time, usual text.Language) *resolvedQuery {
	w := &e.cfg.Weights
	q := e.queries.Get().(*resolvedQuery)
	q.Parse(e.analyzer, &q.read, newest, previous, now, usual, &query.Config{
		Light: w.Light, Request: w.Request, Proper: w.Proper, BorrowTerms: e.cfg.BorrowTerms, BorrowWeight: e.cfg.BorrowWeight,
	})
	return q
}
