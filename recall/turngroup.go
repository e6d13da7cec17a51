package recall

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
