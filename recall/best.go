package recall

import (
	"cmp"
	"slices"
)

// best returns the k best of the turns that rank scored and that pass, best first; it clears the scores. Of equal scores
// the newer turn wins, then the later one. The result is valid until the scratch is used again.
func (ix *index) best(q *query, w *Weights, s *scratch, k int, f *filter) (top []hit) {
	hits := s.picked[:0]
	clear(s.counts[:])
	all := f.passAll()
	for _, n := range s.found {
		score := s.score[n]
		s.score[n] = 0
		if !all && !f.pass(n) {
			continue
		}
		h := hit{turn: n, score: float64(score) * ix.factors(&ix.turns[n], q, w, nil)}
		s.counts[bucketOf(float32(h.score))]++
		hits = append(hits, h)
	}
	s.picked = hits
	if len(hits) > k {
		limit := float64(s.lowest(k))
		hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score < limit })
	}
	ix.sort(hits)
	return hits[:min(len(hits), k)]
}

// sort puts the best first.
func (ix *index) sort(hits []hit) {
	slices.SortFunc(hits, func(a, b hit) int { return ix.worse(b, a) })
}

// worse orders hits, the worst first.
func (ix *index) worse(a, b hit) int {
	if a.score != b.score {
		if a.score < b.score {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(ix.turns[a.turn].time, ix.turns[b.turn].time), cmp.Compare(a.turn, b.turn))
}
