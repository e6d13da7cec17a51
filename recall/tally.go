package recall

import (
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/storage"
)

// tally follows the digest of a scope's memories as the engine learns of them,
// so that a snapshot can say what it was made of. It counts every memory, also
// those that are not indexed; these it remembers as ghosts.
//
// It may be wrong: the store removes what has expired without a word, and an
// index leaves out what does not fit. So it is held against the store's own
// digest before a snapshot is written, and a snapshot's against it before one
// is used.
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
	var done takenOut
	for _, id := range c.removed {
		t.remove(ix, id, &done)
	}
	if c.turn != "" {
		if n, ok := ix.turnByKey(ix.hash(c.turn)); ok {
			of := ix.turns[n]
			for i := of.mem; i < of.mem+int32(of.count); i++ {
				t.remove(ix, string(ix.appendID(nil, i)), &done)
			}
		}
		if len(t.ghosts) > 0 {
			t.removeTurn(ix, storage.TurnMemoryID(c.turn, 0), &done)
		}
	}
	for i := range c.passages {
		t.remove(ix, c.passages[i].memory.ID, &done)
	}
	for i := range c.passages {
		t.digest.Memories++
		t.digest.Sum += c.passages[i].print
	}
	for id, print := range c.unrecallable {
		t.digest.Memories++
		t.digest.Sum += print
		t.setGhost(xxh3.HashString(id), print)
	}
}

// takenOut are the memories of the index that a change has taken out of the
// tally: the index has them still.
type takenOut map[int32]struct{}

// removeTurn takes out whatever has an id that a turn's memories may have;
// first is that of the first. They are many, so none of them is made a string.
func (t *tally) removeTurn(ix *index, first string, done *takenOut) {
	id := append(make([]byte, 0, 2*storage.MaxID), first[:len(first)-1]...)
	for seq := 0; len(t.ghosts) > 0 && seq < storage.MaxWriteMemories; seq++ {
		of := strconv.AppendInt(id, int64(seq), 10)
		if i, ok := ix.memoryOfBytes(of); ok {
			t.takeOut(ix, i, done)
		} else {
			t.removeGhost(xxh3.Hash(of))
		}
	}
}

// remove takes out a memory if it is known, once.
func (t *tally) remove(ix *index, id string, done *takenOut) {
	if i, ok := ix.memoryOf(id); ok {
		t.takeOut(ix, i, done)
	} else {
		t.removeGhost(xxh3.HashString(id))
	}
}

func (t *tally) takeOut(ix *index, i int32, done *takenOut) {
	if _, again := (*done)[i]; again {
		return
	}
	if *done == nil {
		*done = takenOut{}
	}
	(*done)[i] = struct{}{}
	m := ix.memory(i, storage.Scope{})
	t.digest.Remove(&m)
}

func (t *tally) removeGhost(hash uint64) {
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
