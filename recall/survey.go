package recall

import (
	"encoding/binary"
	"math"
	"slices"
)

// How a large index is ranked: survey scores every turn by its own words, which takes a look at each posting; pick takes
// the best of them; nominate adds the turns around these, whose evidence comes from them; and rank scores only those
// exactly, with all fields. Where few turns have words of the query, these are all of them.

const (
	// seedsPerTurn is how many turns are picked by their own words for every turn that is wanted.
	seedsPerTurn = 3
	// maxFound: once so many turns have a score, the remaining terms, which are the commonest, only add to those. (The
	// "continue" strategy of Moffat and Zobel, Self-indexing inverted files, 1996.)
	maxFound = 1000
	// reach is how far the evidence of a turn goes in its conversation.
	reach = 3
	// slight: what adds less than this part of a good score has no say in which turns are picked.
	slight = 6
)

// maxTurns is how many turns an index can number.
const maxTurns = 1 << 24

// brief is what the survey reads of a turn: it takes four bytes where the turn takes 48, so that those of thousands of turns
// stay in the processor's cache.
type brief struct {
	user, assistant uint8 // lengths, coarsely
	signs           uint8 // the traits that are factors, and opens
	flags           flags
}

const (
	factorTraits = firstPerson | hasTime | hasNumber | hasName
	opens        = uint8(factorTraits) + 1 // the turn is the first of its conversation
	signs        = 2 * int(opens)          // how many values brief.signs has
)

const exactLengths = 128

func coarse(n uint16) uint8 {
	if n < exactLengths {
		return uint8(n)
	}
	return uint8(min(exactLengths+(n-exactLengths)/16, 255))
}

func (t *turn) brief() brief {
	b := brief{coarse(t.userLen), coarse(t.asstLen), uint8(t.traits & factorTraits), t.flags}
	if t.opens() {
		b.signs |= opens
	}
	return b
}

// norms are the factors of the fields by what stands in a posting and by coarse length.
type norms struct {
	user, assistant             [32]float32 // weights by frequency
	userLength, assistantLength [256]float32
}

func (m *norms) fill(f *fieldWeights) {
	for i := range m.user {
		tf := frequency(i)
		m.user[i] = f.user*tf.tell() + f.userAsk*tf.ask()
	}
	for i := range 8 {
		m.assistant[i] = f.assistant * float32(i)
	}
	for i := range m.userLength {
		n := uint16(i)
		if n >= exactLengths {
			n = exactLengths + (n-exactLengths)*16 + 8
		}
		m.userLength[i] = f.userNorm(n)
		m.assistantLength[i] = f.assistantNorm(n)
	}
}

// cheapestFirst orders the terms by how many postings they cost, which puts the rarest first.
func (ix *index) cheapestFirst(q *query, s *scratch) []int {
	s.order = s.order[:0]
	s.costs = s.costs[:0]
	for i, t := range q.terms {
		cost := 0
		for _, w := range t.words {
			cost += len(ix.posts[w.id].buf)
		}
		s.order = append(s.order, i)
		s.costs = append(s.costs, cost)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return s.costs[a] - s.costs[b] })
	return s.order
}

// survey decodes the postings of the query and scores turns by their own words. The words of one concept count apart,
// so that the sum is a little too high where a turn has several.
func (ix *index) survey(q *query, w *Weights, f *fieldWeights, s *scratch, k int) {
	m := &s.norms
	if s.normsOf != *f { // mostly those of the query before
		m.fill(f)
		s.normsOf = *f
	}
	order := ix.cheapestFirst(q, s)
	most := (max(f.user, f.userAsk) + f.assistant) / f.userFlat // once, in the shortest text
	most /= f.k1 + most
	rest := 0.0 // what the terms still to come can add to a turn, but for rare cases
	for _, i := range order {
		rest += q.terms[i].idf * q.terms[i].weight * float64(most)
	}
	bound := q.maxFactor(w)
	for _, i := range order {
		qt := &q.terms[i]
		narrow, late := len(s.found) > maxFound, false
		adds := qt.idf * qt.weight * float64(most)
		if enough := k / 2; len(s.found) >= enough && s.costs[i] > 2*len(s.found) {
			least := float64(s.kth(enough))
			narrow = narrow || rest*bound < least
			late = narrow && (len(s.found) <= k*seedsPerTurn || adds*slight < least)
		}
		rest -= adds
		weight := float32(qt.idf * qt.weight)
		for _, word := range qt.words {
			from := len(s.entries)
			s.spans = append(s.spans, span{concept: i, term: word.id, share: word.share, itself: word.how == "", from: from, to: from, late: late})
			if late {
				continue
			}
			ix.decode(word.id, s)
			s.spans[len(s.spans)-1].to = len(s.entries)
			found, sums := s.found, s.sums
			for _, e := range s.entries[from:] {
				n := e >> 8
				at := s.slot[n]
				if at == 0 {
					if narrow {
						continue
					}
					found, sums = append(found, int32(n)), append(sums, 0)
					at = uint32(len(found))
					s.slot[n] = at
				}
				l := ix.briefs[n]
				x := word.share * (m.user[e&31]*m.userLength[l.user] + m.assistant[e>>5&7]*m.assistantLength[l.assistant])
				sums[at-1] += weight * x / (f.k1 + x)
			}
			s.found, s.sums = found, sums
		}
	}
}

// decodeNear appends the postings of a term in turns that are near candidates.
func (ix *index) decodeNear(id uint32, s *scratch) {
	out := s.entries
	now := uint32(0)
	buf := ix.posts[id].buf
	for i := 0; i < len(buf); i++ {
		d := uint32(buf[i])
		i++
		if d >= 0x80 {
			v, n := binary.Uvarint(buf[i-1:])
			d = uint32(v)
			i += n - 1
		}
		if now += d; s.near.has(int32(now - 1)) {
			out = append(out, (now-1)<<8|uint32(buf[i]))
		}
	}
	s.entries = out
}

// decode appends the postings of a term to s.entries, those of removed turns left out.
func (ix *index) decode(id uint32, s *scratch) {
	p := &ix.posts[id]
	buf := p.buf
	s.entries = slices.Grow(s.entries, int(p.df)+min(len(buf)/2, ix.dead*2))
	out := s.entries
	now := uint32(0)
	for i := 0; i < len(buf); {
		d := uint32(buf[i])
		i++
		if d >= 0x80 {
			v, n := binary.Uvarint(buf[i-1:])
			d = uint32(v)
			i += n - 1
		}
		now += d
		out = append(out, (now-1)<<8|uint32(buf[i]))
		i++
	}
	if ix.dead > 0 {
		live := s.entries
		for _, e := range out[len(live):] {
			if ix.turns[e>>8].flags&turnDead == 0 {
				live = append(live, e)
			}
		}
		out = live
	}
	s.entries = out
}

// buckets of scores, by the upper bits of their floating point form: 16 for every power of two from 2^-8 to 2^12. What is
// below or above shares the first or the last.
const (
	buckets     = 320
	bucketShift = 23 - 4
	bucketBase  = (127 - 8) << 4
)

func bucketOf(score float32) int {
	return int(min(max(math.Float32bits(score)>>bucketShift, bucketBase), bucketBase+buckets-1)) - bucketBase
}

// lowest returns the lower end of the bucket that the k-th of the counted scores is in.
func (s *scratch) lowest(k int) float32 {
	left := int32(k)
	for i := buckets - 1; i > 0; i-- {
		if left -= s.counts[i]; left <= 0 {
			return math.Float32frombits(uint32(i+bucketBase) << bucketShift)
		}
	}
	return 0
}

// kth is nearly the k-th best of the survey's scores so far, from below.
func (s *scratch) kth(k int) float32 {
	clear(s.counts[:])
	for _, sum := range s.sums {
		s.counts[bucketOf(sum)]++
	}
	return s.lowest(k)
}

// pick returns the turns that are best by their own words and that may be returned, some more than wanted, and forgets the
// survey.
func (ix *index) pick(q *query, w *Weights, s *scratch, k int, f *filter) []int32 {
	k *= seedsPerTurn
	bySigns := q.signFactors(w)
	anyKind := f.anyKind()
	whole := q.speaker != 0 || q.project != 0 || len(q.dates) > 0 // the signs do not tell every factor
	least := float32(0)
	if whole && len(s.found) > k {
		least = s.kth(k) / float32(q.maxFactor(w))
	}
	const out = -1
	sums := s.sums[:len(s.found)]
	clear(s.counts[:])
	for i, n := range s.found {
		s.slot[n] = 0
		sum := sums[i]
		if sum < least || !anyKind && !f.pass(n) {
			sums[i] = out
			continue
		}
		if whole {
			sum = float32(float64(sum) * ix.factors(&ix.turns[n], q, w, nil))
		} else {
			sum *= bySigns[ix.briefs[n].signs]
		}
		s.counts[bucketOf(sum)]++
		sums[i] = sum
	}
	limit := float32(0)
	if len(sums) > k {
		limit = s.lowest(k)
	}
	check := anyKind && f.hides() // only of the best it matters whether the request carries them
	for {
		best := s.seeds[:0]
		hidden := false
		for i, sum := range sums {
			if sum < limit {
				continue
			}
			if n := s.found[i]; !check || f.pass(n) {
				best = append(best, n)
				continue
			}
			s.counts[bucketOf(sum)]--
			sums[i] = out
			hidden = true
		}
		s.seeds = best
		if !hidden {
			break
		}
		limit = s.lowest(k)
	}
	s.found, s.sums = s.found[:0], s.sums[:0]
	return s.seeds[:min(len(s.seeds), 2*k)]
}

// signFactors are the factors of turns by their signs. What a speaker's name, the project and dates add is not in them.
func (q *query) signFactors(w *Weights) (by [signs]float32) {
	for i := range by {
		product := 1.0
		if i&int(firstPerson) != 0 {
			product *= q.personFactor(w)
		}
		if i&int(opens) != 0 {
			product *= w.Opening
		}
		if q.intent&wantsTime != 0 && i&int(hasTime) != 0 {
			product *= w.TimeAnswer
		}
		if q.intent&wantsNumber != 0 && i&int(hasNumber) != 0 {
			product *= w.NumberAnswer
		}
		if q.intent&wantsName != 0 && i&int(hasName) != 0 {
			product *= w.NameAnswer
		}
		by[i] = float32(product)
	}
	return by
}

// nominate marks the seeds and the turns within reach of them as candidates, and all turns whose text counts for those.
func (ix *index) nominate(seeds []int32, s *scratch) {
	for _, seed := range seeds {
		t := &ix.turns[seed]
		s.chosen.set(seed)
		s.near.set(seed)
		if t.alone() {
			continue
		}
		whole := ix.talks(t.conv)
		if whole && !s.met.has(t.conv) {
			s.met.set(t.conv)
			s.talked = append(s.talked, t.conv)
			for n := ix.convs.list[t.conv].last; n >= 0; n = ix.turns[n].prev {
				s.near.set(n)
			}
		}
		around := reach
		if !whole {
			around = 2 * reach
		}
		for n, i := t.prev, 1; n >= 0 && i <= around; n, i = ix.turns[n].prev, i+1 {
			if s.near.set(n); i <= reach {
				s.chosen.set(n)
			}
		}
		for n, i := t.next, 1; n >= 0 && i <= around; n, i = ix.turns[n].next, i+1 {
			if s.near.set(n); i <= reach {
				s.chosen.set(n)
			}
		}
	}
	for _, c := range s.talked {
		s.met[c>>6] = 0
	}
	s.talked = s.talked[:0]
}
