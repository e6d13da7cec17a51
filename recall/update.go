package recall

import "slices"

// apply changes the index.
func (ix *index) apply(c change) {
	for _, id := range c.removed {
		if i, ok := ix.memoryOf(id); ok {
			ix.removeMemory(i)
		}
	}
	if c.turn != "" {
		if n, ok := ix.turnByKey(ix.hash(c.turn)); ok {
			ix.remove(n)
		}
	}
	for rest := c.passages; len(rest) > 0; {
		key := turnKey(rest[0].memory)
		var same, others []passage
		for _, p := range rest {
			if turnKey(p.memory) == key {
				same = append(same, p)
			} else {
				others = append(others, p)
			}
		}
		if c.turn == "" {
			ix.merge(same)
		} else {
			ix.put(same)
		}
		rest = others
	}
	ix.work = nil // most scopes then rest for a long time
}

// merge adds passages to those that the index has of their turn.
func (ix *index) merge(ps []passage) {
	if n, ok := ix.turnByKey(ix.turnHash(ps[0].memory)); ok {
		t := ix.turns[n]
		for j := t.mem; j < t.mem+int32(t.count); j++ {
			old := ix.passage(j, t.traits)
			if !slices.ContainsFunc(ps, func(p passage) bool { return p.memory.ID == old.memory.ID }) {
				ps = append(ps, old)
			}
		}
	}
	ix.put(ps)
}
