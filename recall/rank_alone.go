package recall

import "slices"

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
