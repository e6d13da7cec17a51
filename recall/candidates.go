package recall

import (
	"encoding/binary"
	"math"
	"math/bits"
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
func (ix ranker) cheapestFirst(q *resolvedQuery, s *scratch) []int {
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
func (ix ranker) survey(q *resolvedQuery, w *Weights, f *fieldWeights, s *scratch, k int) (considered int) {
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
		rest += q.terms[i].idf * q.terms[i].Weight * float64(most)
	}
	bound := q.maxFactor(w)
	for _, i := range order {
		qt := &q.terms[i]
		considered = len(s.found)
		narrow, late := considered > maxFound, false
		adds := qt.idf * qt.Weight * float64(most)
		if enough := k / 2; considered >= enough && s.costs[i] > 2*considered {
			least := float64(s.kth(enough))
			narrow = narrow || rest*bound < least
			late = narrow && (considered <= k*seedsPerTurn || adds*slight < least)
		}
		rest -= adds
		weight := float32(qt.idf * qt.Weight)
		for _, word := range qt.words {
			p := &ix.posts[word.id]
			from := len(s.entries)
			s.spans = append(s.spans, span{concept: i, term: word.id, share: word.share, itself: word.how == "", from: from, to: from, late: late})
			at := &s.spans[len(s.spans)-1]
			switch {
			case late:
			case narrow: // of its many postings few will count
				ix.tallyFound(p, word.share, weight, f.k1, s)
				at.late = true
			default:
				ix.tally(p, word.share, weight, f.k1, s)
				at.to = len(s.entries)
			}
		}
	}
	considered = len(s.found)
	if s.marked > 0 {
		clear(s.near)
		s.marked = 0
	}
	return considered
}

// found0 is added to every sum of the survey, so that none that counts is zero. It is too small to change any.
const found0 = 0x1p-126

// tallyFound adds what a term brings to the sums of turns that have one, and returns how many these are.
func (ix ranker) tallyFound(p *postings, share, weight, k1 float32, s *scratch) (added int) {
	m := &s.norms
	buf, briefs := p.buf, ix.briefs
	sums := s.sums[:len(briefs)]
	if p.wide != 0 && len(s.found) < len(buf)/2 {
		by := ix.wide[p.wide-1]
		for _, n := range s.found {
			if int(n) < len(by) && by[n] != 0 {
				tf, l := by[n], briefs[n]
				x := share * (m.user[tf&31]*m.userLength[l.user()] + m.assistant[tf>>5&7]*m.assistantLength[l.assistant()])
				sums[n] += weight*x/(k1+x) + found0
				added++
			}
		}
		return added
	}
	from := len(s.entries)
	s.entries = filterPostings(s.entries, buf, s.markFound())
	left := s.entries[from:]
	for _, e := range left {
		n, tf := e>>8, e&0xff
		l := briefs[n]
		x := share * (m.user[tf&31]*m.userLength[l.user()] + m.assistant[tf>>5&7]*m.assistantLength[l.assistant()])
		sums[n] = sums[n] + weight*x/(k1+x) + found0
	}
	s.entries = s.entries[:from]
	return len(left)
}

// markFound returns the set of the turns in found.
func (s *scratch) markFound() bitset {
	for _, n := range s.found[s.marked:] {
		s.near.set(n)
	}
	s.marked = len(s.found)
	return s.near
}

// tally decodes the postings of a term, those of removed turns left out, and adds what it brings to the sums of their turns.
func (ix ranker) tally(p *postings, share, weight, k1 float32, s *scratch) {
	m := &s.norms
	buf, briefs, sums := p.buf, ix.briefs, s.sums
	sums = sums[:len(briefs)]
	most := len(buf) / 2 // a posting takes two bytes or more
	s.entries = slices.Grow(s.entries, most)
	entries := s.entries[len(s.entries) : len(s.entries)+most]
	s.found = slices.Grow(s.found, most)
	found := s.found[len(s.found) : len(s.found)+most]
	e, fresh := 0, 0
	n := ^uint32(0) // one before the first turn
	for i := 0; i+1 < len(buf); i++ {
		d := uint32(buf[i])
		i++
		if d >= 0x80 {
			v, k := binary.Uvarint(buf[i-1:])
			d = uint32(v)
			i += k - 1
		}
		n += d
		tf, l := buf[i], briefs[n]
		if l&briefDead != 0 {
			continue
		}
		entries[e] = n<<8 | uint32(tf)
		e++
		sum := sums[n]
		found[fresh] = int32(n)
		fresh += int((uint64(math.Float32bits(sum)) - 1) >> 63) // 1 if sum is 0, which can't be foretold
		x := share * (m.user[tf&31]*m.userLength[l.user()] + m.assistant[tf>>5&7]*m.assistantLength[l.assistant()])
		sums[n] = sum + weight*x/(k1+x) + found0
	}
	s.entries = s.entries[:len(s.entries)+e]
	s.found = s.found[:len(s.found)+fresh]
}

// decodeNear appends the postings of a term in turns that are near candidates.
func (ix ranker) decodeNear(id uint32, s *scratch) {
	out, near := s.entries, s.near
	p := &ix.posts[id]
	if p.wide != 0 {
		by := ix.wide[p.wide-1]
		for i := 0; i<<6 < len(by); i++ {
			for word := near[i]; word != 0; word &= word - 1 {
				if n := i<<6 | bits.TrailingZeros64(word); n < len(by) && by[n] != 0 {
					out = append(out, uint32(n)<<8|uint32(by[n]))
				}
			}
		}
		s.entries = out
		return
	}
	s.entries = filterPostings(out, p.buf, near)
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
	for _, n := range s.found {
		s.counts[bucketOf(s.sums[n])]++
	}
	return s.lowest(k)
}

// pick returns the turns that are best by their own words and that may be returned, some more than wanted, and forgets the
// survey.
func (ix ranker) pick(q *resolvedQuery, w *Weights, s *scratch, k int, f *filter) []int32 {
	k *= seedsPerTurn
	found := s.found
	if cap(s.marks) < len(found) {
		s.marks = make([]float32, len(found)+len(found)/4)
	}
	marks := s.marks[:len(found)]
	if f.passAll() && len(found) <= k {
		for _, n := range found {
			s.sums[n] = 0
		}
		s.seeds = append(s.seeds[:0], found...)
		s.found = s.found[:0]
		return s.seeds
	}
	if f.anyKind() && q.inBrief() {
		clear(s.counts[:])
		for i, n := range found {
			mark := s.sums[n]
			s.sums[n] = 0
			mark = s.factors.rough(mark, ix.briefs[n])
			marks[i] = mark
			s.counts[bucketOf(mark)]++
		}
	} else {
		ix.markAll(q, w, s, k, f, marks)
	}
	limit := float32(0)
	if len(found) > k {
		limit = s.lowest(k)
	}
	check := f.anyKind() && f.hides() // only of the best it matters whether the request carries them
	if cap(s.seeds) < len(found) {
		s.seeds = make([]int32, len(found)+len(found)/4)
	}
	for {
		best, n := s.seeds[:len(found)], 0
		for i, mark := range marks {
			best[n] = found[i]
			if !(mark < limit) { // which can't be foretold: there is no branch for it
				n++
			}
		}
		s.seeds = best[:n]
		if !check || !s.hide(marks, limit, f) {
			break
		}
		limit = s.lowest(k)
	}
	s.found = s.found[:0]
	return s.seeds[:min(len(s.seeds), 2*k)]
}

// hide takes the marks of those seeds that the request carries, and reports whether there are any.
func (s *scratch) hide(marks []float32, limit float32, f *filter) bool {
	if !slices.ContainsFunc(s.seeds, func(n int32) bool { return f.carried(n) && !f.pass(n) }) {
		return false // mostly
	}
	for i, mark := range marks {
		if !(mark < limit) && !f.pass(s.found[i]) {
			s.counts[bucketOf(mark)]--
			marks[i] = noMark
		}
	}
	return true
}

// noMark is of turns that are not to be picked.
const noMark = -1

// markAll multiplies the survey's sums by the factors and counts them, where the signs do not tell all factors or not every turn
// may be returned.
func (ix ranker) markAll(q *resolvedQuery, w *Weights, s *scratch, k int, f *filter, marks []float32) {
	least := float32(0)
	if (q.speaker != 0 || !q.inBrief()) && len(s.found) > k {
		least = s.kth(k) / float32(q.maxFactor(w))
	}
	anyKind := f.anyKind()
	clear(s.counts[:])
	for i, n := range s.found {
		mark := s.sums[n]
		s.sums[n] = 0
		if mark < least || !anyKind && !f.pass(n) {
			marks[i] = noMark
			continue
		}
		if q.inBrief() {
			mark = s.factors.rough(mark, ix.briefs[n])
		} else {
			mark = float32(float64(mark) * ix.factors(&ix.turns[n], q, w, nil))
		}
		s.counts[bucketOf(mark)]++
		marks[i] = mark
	}
}

// nominate marks the seeds and the turns within reach of them as candidates, and all turns whose text counts for those. It reports
// whether these are the seeds alone.
func (ix ranker) nominate(seeds []int32, s *scratch) (alone bool) {
	turns, near, chosen := ix.turns, s.near, s.chosen
	alone = true
	for _, seed := range seeds {
		chosen.set(seed)
		near.set(seed)
		if ix.briefs[seed].alone() {
			continue
		}
		alone = false
		conv := turns[seed].conv
		whole := ix.talks(conv)
		if whole && !s.met.has(conv) {
			s.met.set(conv)
			s.talked = append(s.talked, conv)
			for n := ix.convs.list[conv].last; n >= 0; n = ix.before(n) {
				near.set(n)
			}
		}
		around := reach
		if !whole {
			around = 2 * reach
		}
		for n, i := ix.before(seed), 1; n >= 0 && i <= around; n, i = ix.before(n), i+1 {
			if near.set(n); i <= reach {
				chosen.set(n)
			}
		}
		for n, i := ix.after(seed), 1; n >= 0 && i <= around; n, i = ix.after(n), i+1 {
			if near.set(n); i <= reach {
				chosen.set(n)
			}
		}
	}
	for _, c := range s.talked {
		s.met[c>>6] = 0
	}
	s.talked = s.talked[:0]
	return alone
}

// before is the turn before another in its conversation, -1 for none. Mostly it is numbered so, too, which a processor that foretells
// the branch goes by until it has read the turn: else a walk waits for one turn after the other.
func (ix ranker) before(n int32) int32 {
	if t := &ix.turns[n]; t.prev != n-1 {
		return t.prev
	}
	return n - 1
}

// after is the turn behind another in its conversation, -1 for none.
func (ix ranker) after(n int32) int32 {
	if t := &ix.turns[n]; t.next != n+1 {
		return t.next
	}
	return n + 1
}
