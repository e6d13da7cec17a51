package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// best returns the k best candidates that have a score and pass the filter, and
// some more, in no order. The result is valid until the scratch is used again.
func (ix ranker) best(q *resolvedQuery, w *Weights, s *scratch, k int, f *filter) []hit {
	if cap(s.picked) < len(s.ranked) {
		s.picked = make([]hit, len(s.ranked)+len(s.ranked)/4)
	}
	hits, n := s.picked[:len(s.ranked)], 0
	clear(s.counts[:])
	all, inHeader := f.passAll(), q.inHeader()
	for _, i := range s.ranked {
		c := &s.cells[i]
		if !all && !c.seed && !f.pass(c.turn) {
			continue
		}
		h := hit{turn: c.turn, score: float64(c.score)}
		if inHeader {
			h.score *= s.factors.of(c.turnHeader)
		} else {
			h.score *= ix.factors(&ix.turns[c.turn], q, w, nil)
		}
		s.counts[bucketOf(float32(h.score))]++
		hits[n] = h
		n++
	}
	hits = hits[:n]
	if len(hits) > k {
		limit, n := float64(s.lowest(k)), 0
		for _, h := range hits {
			if hits[n] = h; !(h.score < limit) {
				n++
			}
		}
		hits = hits[:n]
	}
	return hits
}

// sortFirst puts the n best hits first, in order, and leaves the others after
// them.
func (ix ranker) sortFirst(hits []hit, n int) {
	n = min(n, len(hits))
	ix.sort(hits[:n])
	for i := n; i < len(hits) && n > 0; i++ {
		if h := hits[i]; h.score >= hits[n-1].score && ix.worse(hits[n-1], h) < 0 {
			hits[i] = hits[n-1]
			ix.insert(hits[:n], h)
		}
	}
}

// maxInsertion is the maximum number of hits that are sorted by insertion,
// which is fastest for some dozens that are nearly in order.
const maxInsertion = 32

// sort puts the best hits first. With equal scores, the newer turn comes first,
// then the later one.
func (ix ranker) sort(hits []hit) {
	if len(hits) > maxInsertion {
		slices.SortFunc(hits, func(a, b hit) int { return ix.worse(b, a) })
		return
	}
	for i := 1; i < len(hits); i++ {
		ix.insert(hits[:i+1], hits[i])
	}
}

// insert moves h, the last of hits, to its position among the others, which are
// in order.
func (ix ranker) insert(hits []hit, h hit) {
	at := len(hits) - 1
	for at > 0 && (hits[at-1].score < h.score || hits[at-1].score == h.score && ix.worse(hits[at-1], h) < 0) {
		hits[at] = hits[at-1]
		at--
	}
	hits[at] = h
}

// worse compares hits; the worst comes first.
func (ix ranker) worse(a, b hit) int {
	if a.score != b.score {
		if a.score < b.score {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(ix.turns[a.turn].time, ix.turns[b.turn].time), cmp.Compare(a.turn, b.turn))
}

// The weights of the two signals of relevance, and how many turns the second
// one considers. docs/recall-figures.md has the measurements.
const (
	coverWeight = 0.6
	coverTurns  = 5
)

// relevance returns how well the best match answers the query, 0..1. It
// combines the share of the query's weight that the best turn's score reaches
// with the largest share that one passage of the best turns has in its own
// words. Long queries reach less of each, which a small term compensates. Small
// group has no relevance.
func relevance(q *resolvedQuery, best, held float64) float64 {
	if q.mass <= 0 || q.SmallTalk {
		return 0
	}
	r := (best/q.mass + coverWeight*held/q.sure + wordsWeight*(math.Log(float64(max(len(q.terms), 1)))-usualTerms)) / (1 + coverWeight)
	return max(0, min(r, 1))
}

// matched returns the best score without the factor of wishes. How the user
// likes things does not say whether the store knows what is asked.
func (ix ranker) matched(top []hit, q *resolvedQuery, w *Weights) float64 {
	if q.Intent&query.WantsAdvice == 0 || w.Wish <= 1 {
		return top[0].score
	}
	best := 0.0
	for _, h := range top[:min(len(top), coverTurns)] {
		if ix.turns[h.turn].traits&text.HasPreference != 0 {
			h.score /= w.Wish
		}
		best = max(best, h.score)
	}
	return best
}

// unseen is the number of turns without any word of the query that the gate
// adds to a scope. In a store of a few turns every word is rare or unknown, so
// a known word counts nearly as much as an unknown one.
const unseen = 200

const (
	wordsWeight = 0.05
	usualTerms  = 1.6 // ln 5
)
