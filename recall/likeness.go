package recall

// likeness is what the query's vector says about the turns of a scope. A nil
// one says nothing.
type likeness struct {
	z      map[int32]float64 // standard deviations above the scope's mean, of each turn's best passage
	weight float64
	gate   float64
	words  Result // found by words alone
}

// Likeness below minZ adds nothing, above maxZ no more than at it. For the
// measurements see docs/recall-figures.md.
const (
	minZ = 2.0
	maxZ = 6.0
)

// addend returns what likeness adds to a turn's score, before the factors: a
// share of the query's weight, so that words and vectors are on one scale
// whatever the model.
func (v *likeness) addend(n int32, q *resolvedQuery) float64 {
	if v == nil {
		return 0
	}
	return v.weight * q.mass * max(0, min((v.z[n]-minZ)/(maxZ-minZ), 1))
}

// addTo adds likeness to the scores of the candidates, and makes candidates of
// the other turns that are like the query.
func (v *likeness) addTo(ix *index, q *resolvedQuery, s *scratch) {
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
			s.cells = append(s.cells, cell{turn: n, turnHeader: ix.headers[n]})
		}
		c := &s.cells[at]
		if !c.found {
			c.found = true
			s.ranked = append(s.ranked, at)
		}
		c.score += float32(add)
	}
}

// relevance returns that of the words alone, or more if the best turn stands
// out: at the vectors' gate it reaches the words' gate. It reports whether only
// vectors brought it there.
func (v *likeness) relevance(q *resolvedQuery, top []hit, gate float64) (r float64, byVectors bool) {
	r = v.words.Relevance
	if v.gate <= 0 || q.SmallTalk {
		return r, false
	}
	best := 0.0
	for _, h := range top {
		best = max(best, v.z[h.turn])
	}
	if seen := min(gate*best/v.gate, 1); seen > r {
		return seen, r < gate && seen >= gate
	}
	return r, false
}

// isOutlier reports whether a turn is returned if only vectors opened the gate.
// Turns other than the best need to reach half of it.
func (v *likeness) isOutlier(n int32) bool { return v.z[n] >= v.gate/2 }
