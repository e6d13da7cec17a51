package recall

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

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

// hasTerm reports whether a term is among packed ones.
func hasTerm(packed []byte, sought uint32) bool {
	for at := 0; at < len(packed); {
		var id uint32
		if id, at = nextTerm(packed, at); id == sought {
			return true
		}
	}
	return false
}

// coverage sums sure * weight over the terms of the query that a passage has.
func (q *resolvedQuery) coverage(packed []byte) (weight float64) {
	var share [256]float32 // by term of the query, at most Config.MaxTerms
	for at := 0; at < len(packed); {
		var id uint32
		id, at = nextTerm(packed, at)
		if !q.may(id) {
			continue
		}
		for k := range q.terms {
			for _, w := range q.terms[k].words {
				if w.id == id && w.gate > share[k] {
					weight += q.terms[k].sure * q.terms[k].Weight * float64(w.gate-share[k])
					share[k] = w.gate
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
			var id uint32
			id, at = nextTerm(h.packed, at)
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

// sort puts the best hits first. With equal scores, the newer turn comes first,
// then the later one.
func (ix ranker) sort(hits []hit) {
	slices.SortFunc(hits, func(a, b hit) int { return ix.worse(b, a) })
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
	// relevanceScale puts the default gate where most questions of another
	// user's are silenced and few of one's own.
	relevanceScale = 0.928
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
	return max(0, min(relevanceScale*r, 1))
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

// A personal question has its answer among the memories more often than the
// words that it shares with them say, most of all while these are few: a lower
// bar than the gate lets few lines pass. It is a share of the gate that rises
// with the number of turns, and reaches the gate at fullStore.
const (
	questionBar = 0.15
	remarkBar   = 2 // a remark needs no memory unless it is close to one
	requestBar  = 0.5
	smallStore  = 20
	fullStore   = 90
	maxUnsure   = 3
	unsureFloor = 0.5
)

// bar returns the relevance that must be reached, where gate is that of any
// message.
func (ix ranker) bar(q *resolvedQuery, gate float64) float64 {
	if q.Remark {
		return remarkBar * gate
	}
	if q.AsksToKnow() && slices.ContainsFunc(q.Terms, func(t query.Term) bool { return t.Role&query.OfArea != 0 }) {
		return gate // limits of the area, to which its words are related, say nothing
	}
	share := 1.0
	switch q.Personal {
	case query.PersonalQuestion:
		share = questionBar
	case query.PersonalRequest:
		share = requestBar
	}
	return gate * (share + (1-share)*ix.fullness())
}

// fullness returns how large the store is: 0 up to smallStore turns, 1 from
// fullStore on.
func (ix ranker) fullness() float64 {
	n := float64(max(ix.live-ix.liveFacts, ix.liveFacts))
	return max(0, min((n-smallStore)/(fullStore-smallStore), 1))
}

const (
	wordsWeight = 0.05
	usualTerms  = 1.6 // ln 5
)

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
