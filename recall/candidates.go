package recall

import (
	"encoding/binary"
	"math"
	"slices"
)

// A large index is ranked in steps. scoreOwnWords scores every turn by its own
// words, which reads each posting once. pickSeeds takes the best of them.
// markCandidates adds the turns around these, to which they lend evidence. Only
// candidates are then scored exactly, with all fields. If few turns have words
// of the query, all of them are candidates.

const (
	// seedsPerTurn is how many seeds are picked for every turn that is wanted.
	seedsPerTurn = 3
	// Once maxFound turns have a score, the remaining terms, which are the most
	// common, only add to those: the "continue" strategy of Moffat and Zobel,
	// Self-indexing inverted files, 1996.
	maxFound = 1000
	// reach is how far in its conversation a turn lends evidence.
	reach = 3
	// A term that adds less than one part in slight of a good score does not
	// influence which seeds are picked.
	slight = 6
)

// maxTurns is the maximum number of turns of an index.
const maxTurns = 1 << 24

// norms are the factors of the fields by frequency and by coarse length.
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

// cheapestFirst orders the terms by the size of their postings, which puts the
// rarest first.
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

// scoreOwnWords decodes the postings of the query and scores turns by their own
// words. The words of one concept count separately, so a turn with several of
// them scores a little too high.
func (ix ranker) scoreOwnWords(q *resolvedQuery, w *Weights, f *fieldWeights, s *scratch, k int) (considered int) {
	m := &s.norms
	if s.normsOf != *f { // mostly the same as for the last query
		m.fill(f)
		s.normsOf = *f
	}
	order := ix.cheapestFirst(q, s)
	maxAdd := (max(f.user, f.userAsk) + f.assistant) / f.userFlat // said once, in the shortest text
	maxAdd /= f.k1 + maxAdd
	rest := 0.0 // what the remaining terms can add to a turn, except in rare cases
	for _, i := range order {
		rest += q.terms[i].idf * q.terms[i].Weight * float64(maxAdd)
	}
	bound := q.maxFactor(w)
	for _, i := range order {
		qt := &q.terms[i]
		considered = len(s.found)
		narrow, late := considered > maxFound, false
		adds := qt.idf * qt.Weight * float64(maxAdd)
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
			case narrow: // few of its many postings will count
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

// minSum is added to every sum, so that no sum that counts is zero. It is too
// small to change any.
const minSum = 0x1p-126

// tallyFound adds a term to the sums of turns that have one.
func (ix ranker) tallyFound(p *postings, share, weight, k1 float32, s *scratch) {
	m := &s.norms
	buf, headers := p.buf, ix.headers
	sums := s.sums[:len(headers)]
	from := len(s.entries)
	s.entries = filterPostings(s.entries, buf, s.markFound())
	left := s.entries[from:]
	for _, e := range left {
		n, tf := e>>8, e&0xff
		l := headers[n]
		x := share * (m.user[tf&31]*m.userLength[l.user()] + m.assistant[tf>>5&7]*m.assistantLength[l.assistant()])
		sums[n] = sums[n] + weight*x/(k1+x) + minSum
	}
	s.entries = s.entries[:from]
}

// markFound returns the set of the turns in found.
func (s *scratch) markFound() bitset {
	for _, n := range s.found[s.marked:] {
		s.near.set(n)
	}
	s.marked = len(s.found)
	return s.near
}

// tally decodes the postings of a term, except those of deleted turns, and adds
// the term to the sums of their turns.
func (ix ranker) tally(p *postings, share, weight, k1 float32, s *scratch) {
	m := &s.norms
	buf, headers, sums := p.buf, ix.headers, s.sums
	sums = sums[:len(headers)]
	room := len(buf) / 2 // a posting takes at least two bytes
	s.entries = slices.Grow(s.entries, room)
	entries := s.entries[len(s.entries) : len(s.entries)+room]
	s.found = slices.Grow(s.found, room)
	found := s.found[len(s.found) : len(s.found)+room]
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
		tf, l := buf[i], headers[n]
		if l&headerDead != 0 {
			continue
		}
		entries[e] = n<<8 | uint32(tf)
		e++
		sum := sums[n]
		found[fresh] = int32(n)
		fresh += int((uint64(math.Float32bits(sum)) - 1) >> 63) // 1 if sum is 0; unpredictable, so no branch
		x := share * (m.user[tf&31]*m.userLength[l.user()] + m.assistant[tf>>5&7]*m.assistantLength[l.assistant()])
		sums[n] = sum + weight*x/(k1+x) + minSum
	}
	s.entries = s.entries[:len(s.entries)+e]
	s.found = s.found[:len(s.found)+fresh]
}

// Scores are counted in buckets by the upper bits of their floating-point form:
// 16 for every power of two from 2^-8 to 2^12. Lower and higher scores share
// the first and the last bucket.
const (
	buckets     = 320
	bucketShift = 23 - 4
	bucketBase  = (127 - 8) << 4
)

func bucketOf(score float32) int {
	return int(min(max(math.Float32bits(score)>>bucketShift, bucketBase), bucketBase+buckets-1)) - bucketBase
}

// lowest returns the lower end of the bucket of the k-th best counted score.
func (s *scratch) lowest(k int) float32 {
	left := int32(k)
	for i := buckets - 1; i > 0; i-- {
		if left -= s.counts[i]; left <= 0 {
			return math.Float32frombits(uint32(i+bucketBase) << bucketShift)
		}
	}
	return 0
}

// kth returns a close lower bound of the k-th best sum so far.
func (s *scratch) kth(k int) float32 {
	clear(s.counts[:])
	for _, n := range s.found {
		s.counts[bucketOf(s.sums[n])]++
	}
	return s.lowest(k)
}

// pickSeeds returns the turns that are best by their own words and may be
// returned, some more than wanted. It clears the sums.
func (ix ranker) pickSeeds(q *resolvedQuery, w *Weights, s *scratch, k int, f *filter) []int32 {
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
	if f.anyKind() && q.inHeader() {
		clear(s.counts[:])
		for i, n := range found {
			mark := s.sums[n]
			s.sums[n] = 0
			mark = s.factors.approximate(mark, ix.headers[n])
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
	check := f.anyKind() && f.hides() // only for the best does it matter whether the request has them
	if cap(s.seeds) < len(found) {
		s.seeds = make([]int32, len(found)+len(found)/4)
	}
	for {
		best, n := s.seeds[:len(found)], 0
		for i, mark := range marks {
			best[n] = found[i]
			if !(mark < limit) { // unpredictable, so no branch
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

// hide removes the marks of seeds that the request already has, and reports
// whether there were any.
func (s *scratch) hide(marks []float32, limit float32, f *filter) bool {
	if !f.mayCarry(s.seeds) || !slices.ContainsFunc(s.seeds, func(n int32) bool { return !f.pass(n) }) {
		return false // the usual case
	}
	for i, mark := range marks {
		if !(mark < limit) && !f.pass(s.found[i]) {
			s.counts[bucketOf(mark)]--
			marks[i] = noMark
		}
	}
	return true
}

// noMark marks turns that are not picked.
const noMark = -1

// markAll multiplies the sums by the factors and counts them. It serves queries
// whose factors the headers don't determine, and filters that exclude whole
// kinds.
func (ix ranker) markAll(q *resolvedQuery, w *Weights, s *scratch, k int, f *filter, marks []float32) {
	least := float32(0)
	if (q.speaker != 0 || !q.inHeader()) && len(s.found) > k {
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
		if q.inHeader() {
			mark = s.factors.approximate(mark, ix.headers[n])
		} else {
			mark = float32(float64(mark) * ix.factors(&ix.turns[n], q, w, nil))
		}
		s.counts[bucketOf(mark)]++
		marks[i] = mark
	}
}

// markCandidates marks the seeds, the turns within reach of them, and all turns
// whose text counts for those. It reports whether there are only seeds.
func (ix ranker) markCandidates(seeds []int32, s *scratch) (alone bool) {
	turns, near, chosen := ix.turns, s.near, s.chosen
	alone = true
	for _, seed := range seeds {
		chosen.set(seed)
		near.set(seed)
		if ix.headers[seed].alone() {
			continue
		}
		alone = false
		conv := turns[seed].conv
		whole := ix.isGroup(conv)
		if whole && !s.met.has(conv) {
			s.met.set(conv)
			s.grouped = append(s.grouped, conv)
			for n := ix.convs.list[conv].last; n >= 0; n = turns[n].prev {
				near.set(n)
			}
		}
		around := reach
		if !whole {
			around = 2 * reach
		}
		for n, i := turns[seed].prev, 1; n >= 0 && i <= around; n, i = turns[n].prev, i+1 {
			if near.set(n); i <= reach {
				chosen.set(n)
			}
		}
		for n, i := turns[seed].next, 1; n >= 0 && i <= around; n, i = turns[n].next, i+1 {
			if near.set(n); i <= reach {
				chosen.set(n)
			}
		}
	}
	for _, c := range s.grouped {
		s.met[c>>6] = 0
	}
	s.grouped = s.grouped[:0]
	return alone
}
