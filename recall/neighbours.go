package recall

import (
	"math"
	"math/bits"
	"slices"
)

// scoreWithNeighbours scores the candidates with the evidence of the turns near
// them.
func (ix ranker) scoreWithNeighbours(q *resolvedQuery, f *fieldWeights, s *scratch) {
	cells, session := s.cells, s.session
	s.touched = slices.Grow(s.touched[:0], len(cells)+1)                       // one spare element, written without a branch
	ranked, found := slices.Grow(s.ranked[:0], len(cells)+1)[:len(cells)+1], 0 // likewise
	for spans := s.spans; len(spans) > 0; {
		concept, n := spans[0].concept, 1
		for n < len(spans) && spans[n].concept == concept {
			n++
		}
		for i := range spans[:n] {
			ix.gather(&spans[i], ix.nearby(&spans[i], s), f, s)
		}
		qt := &q.terms[concept]
		weight := float32(qt.idf * qt.Weight)
		for _, i := range s.touched {
			c := &cells[i]
			x := c.x + session[c.group]*c.norm // the norm is 0 without a group
			c.x = 0
			ranked[found] = i
			if !c.found {
				found++
			}
			c.found = true
			c.score += weight * x / (f.k1 + x)
		}
		for _, group := range s.grouped {
			session[group] = 0
		}
		s.touched, s.grouped = s.touched[:0], s.grouped[:0]
		spans = spans[n:]
	}
	s.ranked = ranked[:found]
}

// gather adds the evidence of one word to the candidates for which it counts,
// and records it. near are its postings in turns near candidates.
func (ix ranker) gather(word *span, near []uint32, f *fieldWeights, s *scratch) {
	cells, chosen, session, turns, m := s.cells, s.chosen, s.session, ix.turns, &s.norms
	before := s.before[:len(chosen)]
	s.grouped = slices.Grow(s.grouped, len(near)+1)
	touched, grouped := s.touched[:cap(s.touched)], s.grouped[:cap(s.grouped)]
	met, spoke := len(s.touched), len(s.grouped)
	share, assistant := word.share, f.assistant*word.share
	itself, kin, bit := word.bits()
	for _, e := range near {
		n, tf, v := e>>8, frequency(e), &frequencies[e&0xff]
		var tell, ask float32
		group := int32(0)
		if set := chosen[n>>6]; set>>(n&63)&1 != 0 {
			at := before[n>>6] + int32(bits.OnesCount64(set&(1<<(n&63)-1)))
			c := &cells[at]
			c.holds.add(tf, itself, kin, bit)
			b := c.turnHeader
			userLength, asstLength := m.userLength[b.user()], m.assistantLength[b.assistant()]
			if b&headerLong != 0 {
				userLength, asstLength = f.userNorm(turns[n].userLen), f.assistantNorm(turns[n].asstLen)
			}
			tell, ask = v.tell*userLength*share, v.ask*userLength*share
			own := f.user*tell + f.userAsk*ask + assistant*(v.assistant*asstLength)
			if b.alone() { // its text is the whole conversation
				if b&headerInConversation != 0 {
					own += share * v.all * f.aloneNorm(int(turns[n].userLen)+int(turns[n].asstLen))
				}
				tell, ask = 0, 0
			}
			if own != 0 {
				touched[met] = at
				met += isZero(c.x)
				c.x += own
			}
			group = c.group
		} else {
			t := &turns[n]
			userLength := f.userNorm(t.userLen)
			tell, ask = v.tell*userLength*share, v.ask*userLength*share
			if f.session > 0 && ix.isGroup(t.conv) {
				group = t.conv + 1
			}
		}
		grouped[spoke] = group
		spoke += isZero(session[group])
		session[group] += share * v.all
		if tell+ask == 0 {
			continue
		}
		t := &turns[n]
		if m := t.next; m >= 0 { // for the next turn, this is the turn before
			met = s.lend(m, f.toNext(t).of(tell, ask), touched, met)
			if m = turns[m].next; m >= 0 {
				met = s.lend(m, f.before2.of(tell, ask), touched, met)
				if m = turns[m].next; m >= 0 {
					met = s.lend(m, f.away.of(tell, ask), touched, met)
				}
			}
		}
		if m := t.prev; m >= 0 {
			met = s.lend(m, f.after1.of(tell, ask), touched, met)
			if m = turns[m].prev; m >= 0 {
				met = s.lend(m, f.after2.of(tell, ask), touched, met)
				if m = turns[m].prev; m >= 0 {
					met = s.lend(m, f.away.of(tell, ask), touched, met)
				}
			}
		}
	}
	s.touched, s.grouped = touched[:met], grouped[:spoke]
}

// isZero returns 1 for 0 and 0 for larger values, without a branch.
func isZero(v float32) int { return int((uint64(math.Float32bits(v)) - 1) >> 63) }

// lend adds evidence to turn n, if that is a candidate.
func (s *scratch) lend(n int32, v float32, touched []int32, met int) int {
	if v == 0 || !s.chosen.has(n) {
		return met
	}
	at := s.place(n)
	c := &s.cells[at]
	touched[met] = at
	met += isZero(c.x)
	c.x += v
	return met
}

// frequencies holds the parts of every frequency as numbers.
var frequencies = func() (all [256]struct{ tell, ask, assistant, all float32 }) {
	for i := range all {
		f, v := frequency(i), &all[i]
		v.tell, v.ask, v.assistant, v.all = f.tell(), f.ask(), f.assistant(), f.all()
	}
	return all
}()

// byUser and byAssistant return 1 if the term is in their text, otherwise 0.
func (f frequency) byUser() uint32      { return (uint32(f&userFrequency) + uint32(userFrequency)) >> 5 }
func (f frequency) byAssistant() uint32 { return (uint32(f>>5) + 7) >> 3 }
