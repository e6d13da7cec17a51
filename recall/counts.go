package recall

import "slices"

// termCounts counts the terms of one turn. Turns are short: a scan beats a map up to some dozens of terms.
type termCounts struct {
	list []termCount
	long bool           // at is used
	at   map[uint32]int // place in list
	ids  []uint32       // of the passage at hand
}

// reset empties c. Its space is kept.
func (c *termCounts) reset() {
	if c.long {
		clear(c.at)
	}
	c.list, c.long = c.list[:0], false
}

type termCount struct {
	term            uint32
	tell, ask, asst uint16
}

// passage counts the terms of one passage. It returns them, and how many there are, marks left out. The
// ids are valid until the next passage.
func (c *termCounts) passage(ix *index, terms []string, asst bool) (ids []uint32, n int) {
	ids = c.ids[:0]
	for _, s := range terms {
		ids = append(ids, ix.term(s))
	}
	c.ids = ids
	for i := 0; i < len(ids); {
		end := i
		for end < len(ids) && !isMark(ids[end]) {
			end++
		}
		asked := end < len(ids) && ids[end] == markQuestion
		for _, id := range ids[i:end] {
			t := c.of(id)
			switch {
			case asst:
				t.asst++
			case asked:
				t.ask++
			default:
				t.tell++
			}
		}
		n += end - i
		i = end + 1
	}
	return ids, n
}

// of returns the count of a term, valid until the next call.
func (c *termCounts) of(term uint32) *termCount {
	i := -1
	if c.long {
		if j, ok := c.at[term]; ok {
			i = j
		}
	} else {
		i = slices.IndexFunc(c.list, func(t termCount) bool { return t.term == term })
	}
	if i < 0 {
		i = len(c.list)
		c.list = append(c.list, termCount{term: term})
		if c.long {
			c.at[term] = i
		} else if len(c.list) > 32 {
			if c.long = true; c.at == nil {
				c.at = make(map[uint32]int, 128)
			}
			for j, t := range c.list {
				c.at[t.term] = j
			}
		}
	}
	return &c.list[i]
}

// The marks are the first terms of every index.
const (
	markStatement uint32 = iota
	markQuestion
)

func isMark(id uint32) bool { return id <= markQuestion }
