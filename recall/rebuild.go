package recall

import (
	"cmp"
	"slices"
)

// Estimates of what the runtime needs beside the counted buffers, in bytes.
const (
	postOverhead  = 32 + 8
	turnOverhead  = 48
	memOverhead   = 8
	convOverhead  = 16
	shapeOverhead = 250 // it stands in a map, too
)

// bytes estimates the heap that the index holds.
func (ix *index) bytes() int64 {
	return ix.arena.size + ix.terms.held() + int64(cap(ix.posts))*postOverhead + ix.postBytes + ix.shapeBytes +
		int64(cap(ix.turns))*turnOverhead + int64(cap(ix.mems))*memOverhead + int64(cap(ix.convs.list))*convOverhead + ix.convs.names.held() +
		int64(4*len(ix.byTurn.slots)+4*len(ix.byID.slots)) + ix.coder.held() + 1024
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
			ps = append(ps, ix.passage(j, t.traits))
		}
		out.put(ps)
	}
	return out
}
