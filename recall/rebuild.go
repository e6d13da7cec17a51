package recall

import (
	"cmp"
	"slices"
)

// Estimates of what the runtime needs beside the counted buffers, in bytes.
const (
	termOverhead = 96 // map slot, string headers, postings header
	turnOverhead = 56 + 28
	memOverhead  = 16 + 28
	convOverhead = 128
)

// bytes estimates the heap that the index holds.
func (ix *index) bytes() int64 {
	return ix.arena.size + ix.termBytes + ix.shared.bytes + int64(cap(ix.turns))*turnOverhead + int64(cap(ix.mems))*memOverhead +
		int64(len(ix.convs))*convOverhead + 1024
}

// wasteful reports whether a rebuild would give back a good part of the memory.
func (ix *index) wasteful() bool { return ix.dead > 64 && ix.dead > ix.live/3 }

// rebuilt returns a copy without tombstones that keeps at most the newest keep turns.
func (ix *index) rebuilt(keep int) *index {
	alive := make([]int32, 0, ix.live)
	for n := range ix.turns {
		if ix.turns[n].flags&turnDead == 0 {
			alive = append(alive, int32(n))
		}
	}
	slices.SortStableFunc(alive, func(a, b int32) int { return cmp.Compare(ix.turns[a].time, ix.turns[b].time) })
	out := newIndex(ix.seed)
	out.omitted, out.spoken = ix.omitted, ix.spoken
	for _, n := range alive[:max(len(alive)-keep, 0)] {
		out.omitted += int64(ix.turns[n].count)
	}
	for _, n := range alive[max(len(alive)-keep, 0):] {
		t := ix.turns[n]
		ps := make([]passage, 0, t.count)
		for j := t.mem; j < t.mem+int32(t.count); j++ {
			if !ix.mems[j].dead {
				ps = append(ps, ix.passage(j, t.traits))
			}
		}
		if len(ps) > 0 {
			out.put(ps)
		}
	}
	return out
}
