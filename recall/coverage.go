package recall

import (
	"bytes"
	"math/bits"
)

// coverage sums sure * weight over the terms of the query that a passage of
// turn n has.
func (s *selection) coverage(n int32, packed []byte) float64 {
	if h, ok := s.scratch.holdings(n); ok {
		if weight, ok := s.q.coverageAmong(h.user|h.kin|h.assistant, packed); ok {
			return weight
		}
	}
	return s.q.fullCoverage(packed)
}

// userCoverage is coverage of the user's text, from what was recorded of it. It
// is not ok if that does not suffice.
func (q *resolvedQuery) userCoverage(noted holdings) (weight float64, ok bool) {
	if noted.kin != 0 || noted.user&beyond != 0 {
		return 0, false
	}
	for left := noted.user; left != 0; left &= left - 1 {
		t := &q.terms[bits.TrailingZeros32(left)]
		weight += t.sure * t.Weight
	}
	return weight, true
}

// maxSought is how many words are searched for one by one. Reading the whole
// passage finds any number.
const maxSought = 8

// coverageAmong is fullCoverage if the passage can only have these concepts. It
// is not ok if they have too many words.
func (q *resolvedQuery) coverageAmong(concepts uint32, packed []byte) (weight float64, ok bool) {
	if concepts&beyond != 0 {
		return 0, false
	}
	type match struct {
		at, concept int
		share       float32
	}
	var found [maxSought]match
	sought, n := 0, 0
	for left := concepts; left != 0; left &= left - 1 {
		k := bits.TrailingZeros32(left)
		words := q.terms[k].words
		if sought += len(words); sought > maxSought {
			return 0, false
		}
		for _, w := range words {
			at := findTerm(packed, w.id)
			if at < 0 {
				continue
			}
			i := n // in the order of the text, in which fullCoverage adds
			for ; i > 0 && found[i-1].at > at; i-- {
				found[i] = found[i-1]
			}
			found[i] = match{at, k, w.share}
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

// findTerm returns the position of a term among packed ones, or -1.
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
		if from = i + 1; i > 0 && packed[i-1] >= 0x80 { // the match is inside another term
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

// fullCoverage sums sure * weight over the terms of the query that a passage
// has.
func (q *resolvedQuery) fullCoverage(packed []byte) (weight float64) {
	var share [256]float32 // by term of the query, at most Config.MaxTerms
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

// maxPhraseTerms is how much of a turn is read for phrases.
const maxPhraseTerms = 512

// phrases adds to each hit the share w.Phrase of the smaller idf for every two
// terms that are adjacent in the query and in the user's text.
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

// mayHavePhrase reports whether turn n may have a phrase.
func (s *scratch) mayHavePhrase(n int32) bool {
	noted, ok := s.holdings(n)
	return !ok || noted.neighbours()
}

// phrase returns what the phrases of a turn's best passage add. With parts, it
// appends the pairs.
func (ix ranker) phrase(n int32, q *resolvedQuery, w *Weights, parts *[]Part) float64 {
	t := &ix.turns[n]
	best := 0.0
	var found []Part
	left := maxPhraseTerms
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
