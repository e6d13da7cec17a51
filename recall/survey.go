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

// lengths of a turn's texts, coarsely, for the survey.
type lengths struct{ user, assistant uint8 }

const exactLengths = 128

func coarse(n uint16) uint8 {
	if n < exactLengths {
		return uint8(n)
	}
	return uint8(min(exactLengths+(n-exactLengths)/16, 255))
}

func (t *turn) lengths() lengths { return lengths{coarse(t.userLen), coarse(t.asstLen)} }

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
	m.fill(f)
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
			for _, e := range s.entries[from:] {
				n := e >> 8
				if narrow && s.score[n] == 0 {
					continue
				}
				l := ix.lens[n]
				x := word.share * (m.user[e&31]*m.userLength[l.user] + m.assistant[e>>5&7]*m.assistantLength[l.assistant])
				if s.score[n] == 0 {
					s.found = append(s.found, int32(n))
				}
				s.score[n] += weight * x / (f.k1 + x)
			}
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

// kth is nearly the k-th best of the scores so far, from below.
func (s *scratch) kth(k int) float32 {
	clear(s.counts[:])
	for _, n := range s.found {
		s.counts[bucketOf(s.score[n])]++
	}
	return s.lowest(k)
}

// pick returns the turns that are best by their own words and that may be returned, some more than wanted, and clears the
// scores.
func (ix *index) pick(q *query, w *Weights, s *scratch, k int, f *filter) []hit {
	k *= seedsPerTurn
	least := float32(0)
	if len(s.found) > k {
		least = s.kth(k) / float32(q.maxFactor(w))
	}
	picked := s.picked[:0]
	clear(s.counts[:])
	all := f.passAll()
	for _, n := range s.found {
		score := s.score[n]
		s.score[n] = 0
		if score < least || !all && !f.pass(n) {
			continue
		}
		h := hit{turn: n, score: float64(score) * ix.factors(&ix.turns[n], q, w, nil)}
		s.counts[bucketOf(float32(h.score))]++
		picked = append(picked, h)
	}
	s.found = s.found[:0]
	s.picked = picked
	if len(picked) <= k {
		return picked
	}
	limit := float64(s.lowest(k))
	best := picked[:0]
	for _, h := range picked {
		if h.score >= limit && len(best) < 2*k {
			best = append(best, h)
		}
	}
	return best
}

// nominate marks the seeds and the turns within reach of them as candidates, and all turns whose text counts for those.
func (ix *index) nominate(seeds []hit, s *scratch) {
	for _, h := range seeds {
		t := &ix.turns[h.turn]
		s.chosen.set(h.turn)
		s.near.set(h.turn)
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
