package recall

import "math/bits"

// A crowd is the turns that a common word brings in by thousands and that have no rarer word of the query. Few of them can be among
// those picked, so they are not tallied: each gets a bound of its mark, for 32 at once, and the marks are worked out of those
// whose bound reaches what is needed. What is picked is the same as if all were tallied.
type crowd struct {
	words  []crowdWord // the first brings the turns in, the other one adds to them
	others int         // how many turns those are
	tables boundTables
	scale  float64  // of a mark, in bounds
	bounds []int16  // by turn, filled up with zeros to a multiple of 64
	over   []uint64 // a bit for each of bounds: the turn was admitted
	more   []uint64
}

const crowdWords = 2

type crowdWord struct {
	by            []frequency // see index.wide
	share, weight float32
}

// open makes a crowd of those that the word brings in, if it is one of the survey's last and so common that this pays.
func (c *crowd) open(ix *index, word queryWord, weight float32, later []int, q *query, most int, f *filter) bool {
	p := &ix.posts[word.id]
	if p.wide == 0 || int(p.df) <= most || !f.anyKind() || !q.inBrief() {
		return false
	}
	words := 1
	for _, i := range later {
		for _, w := range q.terms[i].words {
			if words++; words > crowdWords || ix.posts[w.id].wide == 0 {
				return false
			}
		}
	}
	if words > 1 && p.df <= maxFound { // the other words might bring in more
		return false
	}
	c.others = int(p.df)
	c.add(ix, word, weight)
	return true
}

func (c *crowd) add(ix *index, word queryWord, weight float32) {
	c.words = append(c.words, crowdWord{ix.wide[ix.posts[word.id].wide-1], word.share, weight})
}

func (c *crowd) isOpen() bool { return len(c.words) > 0 }

func (c *crowd) close() { c.words, c.others = c.words[:0], 0 }

// kth is scratch.kth with the crowd.
func (ix *index) kth(k int, k1 float32, q *query, s *scratch) float32 {
	c := &s.crowd
	if !c.isOpen() {
		return s.kth(k)
	}
	least := ix.bestOfCrowd(k, k1, q, s, nil)
	c.each(func(n int32) { s.sums[n] = 0 })
	return least
}

// fromCrowd adds to found those of the crowd that may be among the k best, and closes it.
func (ix *index) fromCrowd(k int, k1 float32, q *query, s *scratch, f *filter) {
	ix.bestOfCrowd(k, k1, q, s, f)
	s.crowd.each(func(n int32) { s.found = append(s.found, n) })
	s.crowd.close()
}

// bestOfCrowd gives sums to those of the crowd that may be among the k best, which c.over then tells, and returns the lower end of
// the bucket that the k-th of all marks is in. Without a filter, sums count and not marks. With one, what the request carries
// does not count.
func (ix *index) bestOfCrowd(k int, k1 float32, q *query, s *scratch, f *filter) (least float32) {
	c := &s.crowd
	c.bound(ix, k1, q, s, f != nil)
	clear(c.over)
	clear(s.counts[:])
	for _, n := range s.found {
		ix.countMark(n, s, f)
	}
	at := int16(0)
	for want := k + k/4; at != 1 && least == 0; want *= 4 {
		at = c.guess(want)
		ix.admit(at, k1, s, f)
		least = s.lowest(k)
	}
	if below := c.boundOf(least); below < at {
		ix.admit(below, k1, s, f)
		least = s.lowest(k)
	}
	return least
}

func (ix *index) countMark(n int32, s *scratch, f *filter) {
	mark := s.sums[n]
	if f != nil {
		if f.hides() && f.carried(n) && !f.pass(n) {
			return
		}
		mark = s.factors.rough(mark, ix.briefs[n])
	}
	s.counts[bucketOf(mark)]++
}

// admit gives sums to those of the crowd with such a bound that have none, as tally and tallyFound would, and counts their marks.
func (ix *index) admit(at int16, k1 float32, s *scratch, f *filter) {
	c, m := &s.crowd, &s.norms
	overBounds(c.bounds, at, c.more)
	first, sums := &c.words[0], s.sums
	for i, word := range c.more {
		for word &^= c.over[i]; word != 0; word &= word - 1 {
			n := i<<6 | bits.TrailingZeros64(word)
			tf, l := first.by[n], ix.briefs[n]
			if tf == 0 || l&briefDead != 0 || sums[n] != 0 {
				c.more[i] &^= word & -word
				continue
			}
			x := first.share * (m.user[tf&31]*m.userLength[l.user()] + m.assistant[tf>>5&7]*m.assistantLength[l.assistant()])
			sum := first.weight*x/(k1+x) + found0
			for j := 1; j < len(c.words); j++ {
				if w := &c.words[j]; n < len(w.by) && w.by[n] != 0 {
					tf := w.by[n]
					x := w.share * (m.user[tf&31]*m.userLength[l.user()] + m.assistant[tf>>5&7]*m.assistantLength[l.assistant()])
					sum = sum + w.weight*x/(k1+x) + found0
				}
			}
			sums[n] = sum
			ix.countMark(int32(n), s, f)
		}
	}
	c.over, c.more = c.more, c.over
}

// each calls do for those that were admitted.
func (c *crowd) each(do func(n int32)) {
	for i, word := range c.over {
		for ; word != 0; word &= word - 1 {
			do(int32(i<<6 | bits.TrailingZeros64(word)))
		}
	}
}

// guess returns a bound that about so many of the crowd reach.
func (c *crowd) guess(want int) int16 {
	const samples, shift = 512, 7
	var counts [(mostBound + 1) >> shift]int32
	step := len(c.bounds)/samples | 1
	for i := 0; i < len(c.bounds); i += step {
		counts[c.bounds[i]>>shift]++
	}
	left := int32(want/step + 1)
	for i := len(counts) - 1; i > 0; i-- {
		if left -= counts[i]; left <= 0 {
			return int16(i << shift)
		}
	}
	return 1
}

// boundOf is the bound of what has this mark.
func (c *crowd) boundOf(mark float32) int16 {
	const slack = 1 - 1e-5 // more than what rounding takes from a mark
	return int16(max(min(float64(mark)*slack*c.scale, mostBound), 1))
}
