package recall

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
