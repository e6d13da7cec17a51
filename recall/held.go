package recall

import (
	"bytes"
	"math/bits"
)

// heldBy sums sure * weight over the terms of the query that a passage of turn n covers.
func (s *selection) heldBy(n int32, packed []byte) float64 {
	if h, ok := s.scratch.holdings(n); ok {
		if weight, ok := s.q.heldAmong(h.user|h.kin|h.assistant, packed); ok {
			return weight
		}
	}
	return s.q.heldInAll(packed)
}

// heldByUser is what the user's text holds, from what was noted of it; not ok where that does not tell.
func (q *resolvedQuery) heldByUser(noted holdings) (weight float64, ok bool) {
	if noted.kin != 0 || noted.user&beyond != 0 {
		return 0, false
	}
	for left := noted.user; left != 0; left &= left - 1 {
		t := &q.terms[bits.TrailingZeros32(left)]
		weight += t.sure * t.Weight
	}
	return weight, true
}

// mostSought is how many words are looked for one by one; reading a passage through finds any number.
const mostSought = 8

// heldAmong is heldInAll where only these concepts can stand in the passage; not ok if they have too many words.
func (q *resolvedQuery) heldAmong(concepts uint32, packed []byte) (weight float64, ok bool) {
	if concepts&beyond != 0 {
		return 0, false
	}
	type sight struct {
		at, concept int
		share       float32
	}
	var found [mostSought]sight
	sought, n := 0, 0
	for left := concepts; left != 0; left &= left - 1 {
		k := bits.TrailingZeros32(left)
		words := q.terms[k].words
		if sought += len(words); sought > mostSought {
			return 0, false
		}
		for _, w := range words {
			at := findTerm(packed, w.id)
			if at < 0 {
				continue
			}
			i := n // in the order of the text, in which heldInAll adds
			for ; i > 0 && found[i-1].at > at; i-- {
				found[i] = found[i-1]
			}
			found[i] = sight{at, k, w.share}
			n++
		}
	}
	var share [32]float32
	for _, f := range found[:n] {
		if f.share > share[f.concept] {
			weight += q.terms[f.concept].sure * q.terms[f.concept].Weight * float64(f.share-share[f.concept])
			share[f.concept] = f.share
		}
	}
	return weight, true
}

// findTerm returns where a term stands first among packed ones, -1 if nowhere.
func findTerm(packed []byte, id uint32) int {
	first := byte(id)
	if id >= 0x80 {
		first |= 0x80
	}
	for from := 0; ; {
		i := bytes.IndexByte(packed[from:], first)
		if i < 0 {
			return -1
		}
		i += from
		if from = i + 1; i > 0 && packed[i-1] >= 0x80 { // inside another
			continue
		}
		if id < 0x80 {
			return i
		}
		if got, _ := nextTerm(packed, i); got == id {
			return i
		}
	}
}

// heldInAll sums sure * weight over the terms of the query that a passage's terms cover.
func (q *resolvedQuery) heldInAll(packed []byte) (weight float64) {
	var share [256]float32 // by term of the query: Config.MaxTerms is at most that
	for at := 0; at < len(packed); {
		id := uint32(packed[at])
		at++
		if id >= 0x80 { // nextTerm, which is not inlined
			id, at = nextTerm(packed, at-1)
		}
		if !q.may(id) {
			continue
		}
		for k := range q.terms {
			for _, w := range q.terms[k].words {
				if w.id == id && w.share > share[k] {
					weight += q.terms[k].sure * q.terms[k].Weight * float64(w.share-share[k])
					share[k] = w.share
				}
			}
		}
	}
	return weight
}
