package recall

import (
	"math/bits"
	"slices"

	"github.com/remora-proxy/remora/text"
)

// termCounts counts the terms of one turn.
type termCounts struct {
	list  []termCount
	slots []uint32 // hash table: position in list + 1; at most half full, a power of two
	// While an index is built, byTerm replaces slots: by term number, the
	// position of a term that was counted in this round.
	byTerm []termPlace
	round  uint32
	ids    []uint32 // of the current passage
	once   []uint32 // of the current passage, if it is the assistant's: each once, without marks
	nth    uint16   // passage of the turn
}

const (
	leastSlots  = 128
	likelySlots = 2048
)

type termPlace struct{ round, at uint32 }

// reset empties c for likely at most so many terms, and keeps its memory.
func (c *termCounts) reset(terms int, building bool) {
	c.list, c.nth = c.list[:0], 0
	if building {
		c.round++
		if c.byTerm == nil {
			c.growByTerm(leastSlots)
		}
		return
	}
	c.byTerm = nil
	slots := min(max(1<<bits.Len(uint(2*terms)), leastSlots), likelySlots)
	c.slots = cleared(c.slots, slots)
}

// growByTerm makes room for the term of this number, and many more.
func (c *termCounts) growByTerm(term uint32) {
	if int(term) >= len(c.byTerm) {
		c.byTerm = append(c.byTerm, make([]termPlace, int(term)+1)...)
	}
}

// cleared returns n zeros, in the memory of s if it suffices.
func cleared(s []uint32, n int) []uint32 {
	if cap(s) < n {
		return make([]uint32, n)
	}
	s = s[:n]
	clear(s)
	return s
}

type termCount struct {
	term            uint32
	tell, ask, asst uint16
	last            uint16 // the last passage of the assistant's that has it
}

// number returns the numbers of terms, valid until the next passage.
func (c *termCounts) number(ix *index, terms []string) []uint32 {
	c.ids = c.ids[:0]
	for _, s := range terms {
		c.ids = append(c.ids, ix.term(s))
	}
	return c.ids
}

// passage counts the terms of one passage and returns how many there are,
// without marks.
func (c *termCounts) passage(ids []uint32, asst bool) (n int) {
	c.once = c.once[:0]
	c.nth++
	if c.byTerm != nil {
		if len(ids) > 0 {
			c.growByTerm(slices.Max(ids))
		}
		if asst {
			return c.assistantsByTerm(ids)
		}
		return c.usersByTerm(ids)
	}
	for i := 0; i < len(ids); {
		end := i
		for end < len(ids) && !text.IsMark(ids[end]) {
			end++
		}
		asked := end < len(ids) && ids[end] == text.MarkQuestion
		for _, id := range ids[i:end] {
			t := c.of(id)
			switch {
			case asst:
				if t.asst++; t.last != c.nth {
					t.last = c.nth
					c.once = append(c.once, id)
				}
			case asked:
				t.ask++
			default:
				t.tell++
			}
		}
		n += end - i
		i = end + 1
	}
	return n
}

// assistantsByTerm and usersByTerm are passage with byTerm. Which terms are
// new, and which are marks, is unpredictable, so they don't branch on it: a
// count that may be new is written after the last one, and kept if it is.
func (c *termCounts) assistantsByTerm(ids []uint32) (n int) {
	counted, kept, nth, round := len(c.list), 0, c.nth, c.round
	list, once, byTerm := slices.Grow(c.list, len(ids))[:counted+len(ids)], slices.Grow(c.once, len(ids))[:len(ids)], c.byTerm
	for _, id := range ids {
		p := &byTerm[id]
		counts, fresh, at := number(!text.IsMark(id)), number(p.round != round), p.at
		if p.round != round {
			at = uint32(counted)
		}
		*p = termPlace{round * uint32(counts), at}
		list[counted] = termCount{term: id}
		counted += fresh & counts
		once[kept] = id
		t := &list[at]
		kept += number(t.last != nth) & counts
		t.last = nth
		t.asst++
		n += counts
	}
	c.list, c.once = list[:counted], once[:kept]
	return n
}

func (c *termCounts) usersByTerm(ids []uint32) (n int) {
	counted, round := len(c.list), c.round
	list, byTerm := slices.Grow(c.list, len(ids))[:counted+len(ids)], c.byTerm
	for len(ids) > 0 {
		end := slices.IndexFunc(ids, text.IsMark)
		asked := uint16(0)
		if end < 0 {
			end = len(ids)
		} else if ids[end] == text.MarkQuestion {
			asked = 1
		}
		for _, id := range ids[:end] {
			p := &byTerm[id]
			at := p.at
			if p.round != round {
				at = uint32(counted)
			}
			list[counted] = termCount{term: id}
			counted += number(p.round != round)
			*p = termPlace{round, at}
			t := &list[at]
			t.ask += asked
			t.tell += 1 - asked
		}
		n += end
		ids = ids[min(end+1, len(ids)):]
	}
	c.list = list[:counted]
	return n
}

// of returns the count of a term, valid until the next call.
func (c *termCounts) of(term uint32) *termCount {
	if c.byTerm != nil {
		c.growByTerm(term)
		p := &c.byTerm[term]
		if p.round != c.round {
			*p = termPlace{c.round, uint32(len(c.list))}
			c.list = append(c.list, termCount{term: term})
		}
		return &c.list[p.at]
	}
	at := c.slot(term)
	if n := c.slots[at]; n > 0 {
		return &c.list[n-1]
	}
	c.list = append(c.list, termCount{term: term})
	c.slots[at] = uint32(len(c.list))
	if 2*len(c.list) > len(c.slots) {
		c.slots = cleared(c.slots, 2*len(c.slots))
		for i := range c.list {
			c.slots[c.slot(c.list[i].term)] = uint32(i + 1)
		}
	}
	return &c.list[len(c.list)-1]
}

// slot returns the position of a term, or the empty one where it would go.
func (c *termCounts) slot(term uint32) uint32 {
	mask := uint32(len(c.slots) - 1)
	i := uint32(uint64(term)*0x9e3779b97f4a7c15>>32) & mask
	for c.slots[i] > 0 && c.list[c.slots[i]-1].term != term {
		i = (i + 1) & mask
	}
	return i
}

// number returns 1 for true.
func number(is bool) (n int) {
	if is {
		n = 1
	}
	return n
}
