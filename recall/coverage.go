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

// phraseTerms is how much of a turn is read for phrases.
const phraseTerms = 512

// phrases adds, to these turns, the share w.Phrase of the lesser idf for every two terms that follow one another in the
// query and in the user's text.
func (ix ranker) phrases(q *resolvedQuery, w *Weights, hits []hit, s *scratch) {
	if w.Phrase == 0 || len(q.terms) < 2 {
		return
	}
	for i := range hits {
		hits[i].phrased = true
		if !s.mayHavePhrase(hits[i].turn) {
			continue
		}
		if v := ix.phrase(hits[i].turn, q, w, nil); v > 0 {
			hits[i].score += v * ix.factors(&ix.turns[hits[i].turn], q, w, nil)
		}
	}
}

// mayHavePhrase reports whether there may be a phrase in turn n.
func (s *scratch) mayHavePhrase(n int32) bool {
	noted, ok := s.holdings(n)
	return !ok || noted.neighbours()
}

// phrase is what the best passage of a turn adds. With parts, it notes the pairs.
func (ix ranker) phrase(n int32, q *resolvedQuery, w *Weights, parts *[]Part) float64 {
	t := &ix.turns[n]
	best := 0.0
	var found []Part
	left := phraseTerms
	end := t.mem + int32(t.count)
	if t.flags&turnSpoken != 0 {
		end = t.mem + 1
	}
	for j := t.mem; j < end && left > 0; j++ {
		h := ix.head(j)
		if h.assistant {
			continue
		}
		left -= h.terms
		sum, last := 0.0, -2
		var seen uint64 // pairs by their second term
		var pairs []Part
		for at := 0; at < len(h.packed); {
			id := uint32(h.packed[at])
			at++
			if id >= 0x80 {
				id, at = nextTerm(h.packed, at-1)
			}
			k := -2
			if q.may(id) {
				k = q.termOf(id)
			}
			if k >= 0 && k == last+1 && seen&(1<<(k&63)) == 0 {
				seen |= 1 << (k & 63)
				v := w.Phrase * min(q.terms[k].idf, q.terms[last].idf)
				sum += v
				if parts != nil {
					pairs = append(pairs, Part{Name: PartPhrase, Term: q.terms[last].Stem + " " + q.terms[k].Stem, Value: v})
				}
			}
			last = k
		}
		if sum > best {
			best, found = sum, pairs
		}
	}
	if parts != nil {
		*parts = append(*parts, found...)
	}
	return best
}
