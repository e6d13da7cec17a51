package recall

// change is one Add or Forget, with its memories analysed.
type change struct {
	turn         string
	passages     []passage
	unrecallable map[string]uint64 // fingerprints, by id, of memories that the store has and that must not be returned
	removed      []string          // ids, including those of unrecallable
}

// size returns the number of memories that a change is about.
func (c *change) size() int { return len(c.passages) + len(c.removed) }

// bytes estimates the memory that a change keeps.
func (c *change) bytes() int64 {
	const perMemory, perTerm, perID = 512, 24, 80
	n := int64(perID * len(c.removed))
	for i := range c.passages {
		n += int64(perMemory + perTerm*len(c.passages[i].terms) + len(c.passages[i].memory.Text))
	}
	return n
}
