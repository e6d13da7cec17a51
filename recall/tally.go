package recall

import (
	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/storage"
)

// tally follows the digest of a scope's memories as the engine learns of them, so that a snapshot can say what it was made
// of. It counts every memory, also those that are not indexed; these it remembers as ghosts.
//
// It may be wrong: the store removes what has expired without a word, and an index leaves out what does not fit. So it is
// held against the store's own digest before a snapshot is written, and a snapshot's against it before one is used.
type tally struct {
	digest storage.Digest
	ghosts map[uint64]uint64 // fingerprints by hash of the id
}

func (t *tally) setGhost(id, print uint64) {
	if t.ghosts == nil {
		t.ghosts = map[uint64]uint64{}
	}
	t.ghosts[id] = print
}

// seen counts a memory that a scan found.
func (t *tally) seen(m *storage.Memory) {
	t.digest.Add(m)
	if !recallable(m) {
		t.setGhost(xxh3.HashString(m.ID), m.Fingerprint())
	}
}

// apply counts a change that the index has not made yet.
func (t *tally) apply(ix *index, c *change) {
	done := map[string]bool{}
	for _, id := range c.gone {
		t.remove(ix, id, done)
	}
	if c.turn != "" {
		if n, ok := ix.turnByKey(ix.hash(c.turn)); ok {
			of := ix.turns[n]
			for i := of.mem; i < of.mem+int32(of.count); i++ {
				t.remove(ix, string(ix.appendID(nil, i)), done)
			}
		}
		for seq := 0; len(t.ghosts) > 0 && seq < storage.MaxWriteMemories; seq++ {
			t.remove(ix, storage.TurnMemoryID(c.turn, seq), done)
		}
	}
	for i := range c.passages {
		t.remove(ix, c.passages[i].memory.ID, done)
	}
	for i := range c.passages {
		t.digest.Memories++
		t.digest.Sum += c.passages[i].print
	}
	for id, print := range c.ghosts {
		t.digest.Memories++
		t.digest.Sum += print
		t.setGhost(xxh3.HashString(id), print)
	}
}

// remove takes out a memory if it is known, once.
func (t *tally) remove(ix *index, id string, done map[string]bool) {
	if done[id] {
		return
	}
	done[id] = true
	if i, ok := ix.memoryOf(id); ok {
		m := ix.memory(i, storage.Scope{})
		t.digest.Remove(&m)
		return
	}
	hash := xxh3.HashString(id)
	if print, ok := t.ghosts[hash]; ok {
		t.digest.Memories--
		t.digest.Sum -= print
		delete(t.ghosts, hash)
	}
}

// clone is a tally of its own.
func (t *tally) clone() *tally {
	c := &tally{digest: t.digest}
	for id, print := range t.ghosts {
		c.setGhost(id, print)
	}
	return c
}
