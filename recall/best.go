package recall

import (
	"cmp"
	"slices"
)

// best returns the k best of the turns that rank scored and that pass, best first; it clears the scores. Of equal scores the newer turn wins, then the later one. The result is valid until the scratch is used again.
func (ix *index) best(q *query, w *Weights, s *scratch, k int, pass func(n int32) bool) (top []hit) {
	heap := s.heap[:0]
	bound := q.maxFactor(w)
	least := 0.0 // the score to beat
	for _, n := range s.found {
		score := float64(s.score[n])
		s.score[n] = 0
		if score*bound < least {
			continue
		}
		h := hit{turn: n, score: score * ix.factors(&ix.turns[n], q, w, nil)}
		switch {
		case h.score < least || len(heap) == k && ix.worse(h, heap[0]) <= 0 || !pass(n):
		case len(heap) < k:
			heap = append(heap, h)
			for i := len(heap) - 1; i > 0; { // sift up
				p := (i - 1) / 2
				if ix.worse(heap[i], heap[p]) >= 0 {
					break
				}
				heap[i], heap[p] = heap[p], heap[i]
				i = p
			}
		default:
			heap[0] = h
			ix.siftDown(heap)
		}
		if len(heap) == k {
			least = heap[0].score
		}
	}
	ix.sort(heap)
	s.heap = heap
	return heap
}

func (ix *index) siftDown(heap []hit) {
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(heap) {
			return
		}
		if c+1 < len(heap) && ix.worse(heap[c+1], heap[c]) < 0 {
			c++
		}
		if ix.worse(heap[c], heap[i]) >= 0 {
			return
		}
		heap[i], heap[c] = heap[c], heap[i]
		i = c
	}
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
