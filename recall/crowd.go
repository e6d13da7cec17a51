package recall

import "math/bits"

// A crowd is the turns that a common word brings in by thousands and that have no rarer word of the query. Few of them can be among
// those picked, so they are not tallied: each gets a bound of its mark, for sixteen at once, and the marks are worked out of those
// whose bound reaches what is needed. What is picked is the same as if all were tallied.
type crowd struct {
	words  []crowdWord // the first brings the turns in, the other one adds to them
	others int         // how many turns those are
	tables boundTables
	scale  float64 // of a sum, in bounds
	marked float64 // of a mark, in bounds; 0: sums count
	bounds []int16 // by turn, filled up with zeros to a multiple of 64
	over   []uint64
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

// sum is what the words bring to turn n, as tally and tallyFound would add it up; 0 if it is not one of the crowd.
func (c *crowd) sum(n int, l brief, k1 float32, m *norms) (sum float32) {
	for i := range c.words {
		w := &c.words[i]
		tf := frequency(0)
		if n < len(w.by) {
			tf = w.by[n]
		}
		if tf != 0 {
			x := w.share * (m.user[tf&31]*m.userLength[l.user()] + m.assistant[tf>>5&7]*m.assistantLength[l.assistant()])
			sum = sum + w.weight*x/(k1+x) + found0
		} else if i == 0 {
			return 0
		}
	}
	return sum
}

// kth is scratch.kth with the crowd.
func (ix *index) kth(k int, k1 float32, q *query, s *scratch) float32 {
	if !s.crowd.isOpen() {
		return s.kth(k)
	}
	return ix.crowdBest(k, k1, q, s, nil, false)
}

// fromCrowd adds to found those of the crowd that may be among the k best, and closes it.
func (ix *index) fromCrowd(k int, k1 float32, q *query, s *scratch, f *filter) {
	ix.crowdBest(k, k1, q, s, f, true)
	s.crowd.close()
}

// crowdBest returns the lower end of the bucket that the k-th of all marks is in, or with no filter, of all sums. What the request
// carries does not count.
func (ix *index) crowdBest(k int, k1 float32, q *query, s *scratch, f *filter, take bool) float32 {
	c := &s.crowd
	sums, briefs := s.sums[:len(ix.briefs)], ix.briefs
	check := f != nil && f.hides()
	count := func(n int32, sum float32) float32 {
		if f != nil {
			sum = s.factors.rough(sum, briefs[n])
		}
		if !check || f.pass(n) {
			s.counts[bucketOf(sum)]++
		}
		return sum
	}
	all := func(at int16, each func(n int32, sum float32)) {
		overBounds(c.bounds, at, c.over)
		for i, word := range c.over {
			for ; word != 0; word &= word - 1 {
				n := i<<6 | bits.TrailingZeros64(word)
				if l := briefs[n]; l&briefDead == 0 && sums[n] == 0 {
					if sum := c.sum(n, l, k1, &s.norms); sum != 0 {
						each(int32(n), sum)
					}
				}
			}
		}
	}
	found := s.found
	restart := func() {
		clear(s.counts[:])
		for _, n := range found {
			count(n, sums[n])
		}
	}
	c.bound(ix, k1, q, s, f != nil)
	at := int16(0)
	for want := k + k/4; ; want *= 4 {
		at = c.guess(want, s)
		restart()
		all(at, func(n int32, sum float32) { count(n, sum) })
		if least := s.lowest(k); least > 0 || at == 1 {
			at = c.boundOf(least)
			break
		}
	}
	restart()
	all(at, func(n int32, sum float32) {
		count(n, sum)
		if take {
			sums[n] = sum
			s.found = append(s.found, n)
		}
	})
	return s.lowest(k)
}

// guess returns a bound that about so many of the crowd have or pass.
func (c *crowd) guess(want int, s *scratch) int16 {
	const samples, shift = 512, 7 // of 15 bits
	clear(s.counts[:])
	step := len(c.bounds)/samples | 1
	for i := 0; i < len(c.bounds); i += step {
		s.counts[c.bounds[i]>>shift]++
	}
	left := int32(want/step + 1)
	for i := 1<<(15-shift) - 1; i > 0; i-- {
		if left -= s.counts[i]; left <= 0 {
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
