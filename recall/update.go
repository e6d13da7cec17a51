package recall

import (
	"slices"
)

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

// turnGroup collects the passages of turns during a scan. The passages of a
// turn come close together, but others may come in between, so a few turns are
// open at a time.
type turnGroup struct {
	ix   *index
	open [openTurns]openTurn
	next int // in open, the next to be closed
}

type openTurn struct {
	key      turnName
	passages []passage // empty if no turn is open
}

const openTurns = 16

func (g *turnGroup) add(p passage) {
	key := turnKey(p.memory)
	for i := range g.open {
		if t := &g.open[i]; t.key == key {
			t.passages = append(t.passages, p)
			return
		}
	}
	g.close()
	t := &g.open[g.next]
	t.key, t.passages = key, append(t.passages, p)
	g.next = (g.next + 1) % openTurns
}

// close adds the passages of the next turn to the index.
func (g *turnGroup) close() {
	t := &g.open[g.next]
	if len(t.passages) > 0 {
		g.ix.merge(t.passages)
	}
	clear(t.passages)
	t.key, t.passages = turnName{}, t.passages[:0]
}

// flush closes all turns.
func (g *turnGroup) flush() {
	for range g.open {
		g.close()
		g.next = (g.next + 1) % openTurns
	}
}
