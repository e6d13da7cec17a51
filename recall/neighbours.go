package recall

import (
	"math"
	"math/bits"
	"slices"
)

// rankAmong scores the candidates with what the turns near them lend.
func (ix ranker) rankAmong(q *resolvedQuery, f *fieldWeights, s *scratch) {
	cells, session := s.cells, s.session
	s.touched = slices.Grow(s.touched[:0], len(cells)+1)                       // one more, for the next that was touched before
	ranked, found := slices.Grow(s.ranked[:0], len(cells)+1)[:len(cells)+1], 0 // likewise
	for spans := s.spans; len(spans) > 0; {
		concept, n := spans[0].concept, 1
		for n < len(spans) && spans[n].concept == concept {
			n++
		}
		for i := range spans[:n] {
			ix.gather(&spans[i], ix.close(&spans[i], s), f, s)
		}
		qt := &q.terms[concept]
		weight := float32(qt.idf * qt.Weight)
		for _, i := range s.touched {
			c := &cells[i]
			x := c.x + session[c.talk]*c.norm // as much where it has no talk: its norm is 0
			c.x = 0
			ranked[found] = i
			if !c.found {
				found++
			}
			c.found = true
			c.score += weight * x / (f.k1 + x)
		}
		for _, talk := range s.talked {
			session[talk] = 0
		}
		s.touched, s.talked = s.touched[:0], s.talked[:0]
		spans = spans[n:]
	}
	s.ranked = ranked[:found]
}

// gather adds the evidence of one word to the candidates that it counts for, and notes it. near are its postings in turns that are near
// candidates.
func (ix ranker) gather(word *span, near []uint32, f *fieldWeights, s *scratch) {
	cells, chosen, session, turns, m := s.cells, s.chosen, s.session, ix.turns, &s.norms
	before := s.before[:len(chosen)]
	s.talked = slices.Grow(s.talked, len(near)+1)
	touched, talked := s.touched[:cap(s.touched)], s.talked[:cap(s.talked)]
	met, spoke := len(s.touched), len(s.talked)
	share, assistant := word.share, f.assistant*word.share
	itself, kin, bit := word.bits()
	for _, e := range near {
		n, tf, v := e>>8, frequency(e), &frequencies[e&0xff]
		var tell, ask float32
		talk := int32(0)
		if set := chosen[n>>6]; set>>(n&63)&1 != 0 {
			at := before[n>>6] + int32(bits.OnesCount64(set&(1<<(n&63)-1)))
			c := &cells[at]
			c.holds.note(tf, itself, kin, bit)
			b := c.brief
			userLength, asstLength := m.userLength[b.user()], m.assistantLength[b.assistant()]
			if b&briefLong != 0 {
				userLength, asstLength = f.userNorm(turns[n].userLen), f.assistantNorm(turns[n].asstLen)
			}
			tell, ask = v.tell*userLength*share, v.ask*userLength*share
			own := f.user*tell + f.userAsk*ask + assistant*(v.assistant*asstLength)
			if b.alone() { // its text is all of its conversation's
				if b&briefTalks != 0 {
					own += share * v.all * f.aloneNorm(int(turns[n].userLen)+int(turns[n].asstLen))
				}
				tell, ask = 0, 0
			}
			if own != 0 {
				touched[met] = at
				met += isZero(c.x)
				c.x += own
			}
			talk = c.talk
		} else {
			t := &turns[n]
			userLength := f.userNorm(t.userLen)
			tell, ask = v.tell*userLength*share, v.ask*userLength*share
			if f.session > 0 && ix.talks(t.conv) {
				talk = t.conv + 1
			}
		}
		talked[spoke] = talk
		spoke += isZero(session[talk])
		session[talk] += share * v.all
		if tell+ask == 0 {
			continue
		}
		t := &turns[n]
		if m := t.next; m >= 0 { // to the turn after, this one is the one before
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
	s.touched, s.talked = touched[:met], talked[:spoke]
}

// isZero is 1 for 0, and 0 for what is more; where that can't be foretold a branch would take longer.
func isZero(v float32) int { return int((uint64(math.Float32bits(v)) - 1) >> 63) }

// lend adds evidence to turn n; if that is no candidate it is nothing.
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

// frequencies are what each frequency says, as numbers that need no more than a look.
var frequencies = func() (all [256]struct{ tell, ask, assistant, all float32 }) {
	for i := range all {
		f, v := frequency(i), &all[i]
		v.tell, v.ask, v.assistant, v.all = f.tell(), f.ask(), f.assistant(), f.all()
	}
	return all
}()

// rankAlone is what rank does where all candidates are turns without neighbours, whose text is all that counts for them. There is no
// branch on what can't be foretold.
func (ix ranker) rankAlone(q *resolvedQuery, f *fieldWeights, s *scratch) {
	cells, m := s.cells, &s.norms
	ranked, found := slices.Grow(s.ranked[:0], len(cells)+1)[:len(cells)+1], 0 // one more, for the next that was found before
	for spans := s.spans; len(spans) > 0; {
		concept, n := spans[0].concept, 1
		for n < len(spans) && spans[n].concept == concept {
			n++
		}
		qt := &q.terms[concept]
		weight := float32(qt.idf * qt.Weight)
		for i := range spans[:n] {
			word := &spans[i]
			share := word.share
			itself, kin, bit := word.bits()
			for _, e := range ix.close(word, s) {
				at, tf := s.place(int32(e>>8)), frequency(e)
				c := &cells[at]
				c.holds.note(tf, itself, kin, bit)
				x := float32(0)
				if b := c.brief; b&briefLong == 0 { // mostly: all of it that counts stands in the brief
					norm := m.userLength[b.user()]
					x = f.user * (tf.tell() * norm * share)
					x += f.userAsk * (tf.ask() * norm * share)
					x += f.assistant * share * (tf.assistant() * m.assistantLength[b.assistant()])
					if b&briefTalks != 0 {
						x += share * tf.all() * f.aloneNorm(int(b.user())+int(b.assistant()))
					}
				} else {
					x = ix.ownAlone(c.turn, tf, share, f)
				}
				if x == 0 {
					continue
				}
				if n > 1 {
					s.add(at, x)
					continue
				}
				ranked[found] = at
				if !c.found {
					found++
				}
				c.found = true
				c.score += weight * x / (f.k1 + x)
			}
		}
		for _, i := range s.touched {
			c := &cells[i]
			ranked[found] = i
			if !c.found {
				found++
			}
			c.found = true
			c.score += weight * c.x / (f.k1 + c.x)
			c.x = 0
		}
		s.touched = s.touched[:0]
		spans = spans[n:]
	}
	s.ranked = ranked[:found] // the rarest words' first: mostly the best
}

// add counts evidence for the candidate at a place.
func (s *scratch) add(at int32, v float32) {
	c := &s.cells[at]
	if c.x == 0 {
		s.touched = append(s.touched, at)
	}
	c.x += v
}

// ownAlone is the evidence of a word in turn n, which has no neighbours and whose brief does not tell how long it is.
func (ix ranker) ownAlone(n int32, tf frequency, share float32, f *fieldWeights) float32 {
	t := &ix.turns[n]
	tell, ask, assistant := f.own(t, tf)
	tell *= share
	ask *= share
	own := f.user*tell + f.userAsk*ask + f.assistant*share*assistant
	if t.conv >= 0 {
		own += share * tf.all() * f.aloneNorm(int(t.userLen)+int(t.asstLen))
	}
	return own
}

// byUser and byAssistant are 1 where it stands in their text.
func (f frequency) byUser() uint32      { return (uint32(f&userFrequency) + uint32(userFrequency)) >> 5 }
func (f frequency) byAssistant() uint32 { return (uint32(f>>5) + 7) >> 3 }
