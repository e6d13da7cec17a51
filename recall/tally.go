package recall

import (
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/storage"
)

// tally keeps the digest of a scope's memories up to date, so that a snapshot
// can record which memories it was made from. It counts all memories. Those
// that are not indexed it remembers by their fingerprint.
//
// A tally may be wrong: the store removes expired memories without notice, and
// an index leaves out what exceeds its limit. So it is compared with the
// store's own digest before a snapshot is written, and again before one is
// used.
type tally struct {
	digest    storage.Digest
	unindexed map[uint64]uint64 // fingerprints by hash of the id
}

func (t *tally) setUnindexed(id, print uint64) {
	if t.unindexed == nil {
		t.unindexed = map[uint64]uint64{}
	}
	t.unindexed[id] = print
}

// seen counts a memory that a scan found.
func (t *tally) seen(m *storage.Memory) {
	t.digest.Add(m)
	if !recallable(m) {
		t.setUnindexed(xxh3.HashString(m.ID), m.Fingerprint())
	}
}

// apply counts a change that the index has not made yet.
func (t *tally) apply(ix *index, c *change) {
	done := takenOut{}
	for _, id := range c.removed {
		t.remove(ix, id, done)
	}
	if c.turn != "" {
		if n, ok := ix.turnByKey(ix.hash(c.turn)); ok {
			of := ix.turns[n]
			for i := of.mem; i < of.mem+int32(of.count); i++ {
				t.remove(ix, string(ix.appendID(nil, i)), done)
			}
		}
		if len(t.unindexed) > 0 {
			t.removeTurn(ix, storage.TurnMemoryID(c.turn, 0), done)
		}
	}
	for i := range c.passages {
		t.remove(ix, c.passages[i].memory.ID, done)
	}
	for i := range c.passages {
		t.digest.Memories++
		t.digest.Sum += c.passages[i].print
	}
	for id, print := range c.unrecallable {
		t.digest.Memories++
		t.digest.Sum += print
		t.setUnindexed(xxh3.HashString(id), print)
	}
}

// takenOut holds the memories that a change has removed from the tally. The
// index still has them.
type takenOut map[int32]struct{}

// removeTurn removes all memories with an id that a memory of the turn may
// have. first is the id of the first one. There are many such ids, so none of
// them becomes a string.
func (t *tally) removeTurn(ix *index, first string, done takenOut) {
	id := append(make([]byte, 0, 2*storage.MaxID), first[:len(first)-1]...)
	for seq := 0; len(t.unindexed) > 0 && seq < storage.MaxWriteMemories; seq++ {
		of := strconv.AppendInt(id, int64(seq), 10)
		if i, ok := ix.memoryOfBytes(of); ok {
			t.takeOut(ix, i, done)
		} else {
			t.removeUnindexed(xxh3.Hash(of))
		}
	}
}

// remove removes a memory if it is known and done does not have it yet.
func (t *tally) remove(ix *index, id string, done takenOut) {
	if i, ok := ix.memoryOf(id); ok {
		t.takeOut(ix, i, done)
	} else {
		t.removeUnindexed(xxh3.HashString(id))
	}
}

func (t *tally) takeOut(ix *index, i int32, done takenOut) {
	if _, again := done[i]; again {
		return
	}
	done[i] = struct{}{}
	m := ix.memory(i, storage.Scope{})
	t.digest.Remove(&m)
}

func (t *tally) removeUnindexed(hash uint64) {
	if print, ok := t.unindexed[hash]; ok {
		t.digest.Memories--
		t.digest.Sum -= print
		delete(t.unindexed, hash)
	}
}

// clone returns a copy of t.
func (t *tally) clone() *tally {
	c := &tally{digest: t.digest}
	for id, print := range t.unindexed {
		c.setUnindexed(id, print)
	}
	return c
}
