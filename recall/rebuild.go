package recall

import (
	"cmp"
	"slices"
)

// Estimates of what the runtime needs beside the counted buffers, in bytes.
const (
	postOverhead  = 40 + 8
	turnOverhead  = 48 + 4 + 1
	memOverhead   = 8
	convOverhead  = 24
	shapeOverhead = 250 // it stands in a map, too
)

// bytes estimates the heap that the index holds.
func (ix *index) bytes() int64 {
	wide := 0
	for _, by := range ix.wide {
		wide += cap(by)
	}
	return ix.arena.size + int64(wide) + ix.terms.held() + int64(cap(ix.posts))*postOverhead + ix.postBytes + ix.log.bytes() + ix.shapeBytes +
		int64(cap(ix.turns))*turnOverhead + int64(cap(ix.mems))*memOverhead + int64(cap(ix.convs.list))*convOverhead + ix.convs.names.held() +
		int64(4*len(ix.byTurn.slots)+4*len(ix.byID.slots)) + ix.coder.held() + 1024
}

// compactor rebuilds an index that wastes memory or exceeds its limit. The index
// itself stays as it is.
type compactor struct{ *index }

// wasteful reports whether a rebuild would give back a good part of the memory.
func (ix compactor) wasteful() bool { return ix.dead > 64 && ix.dead > ix.live/3 }

// full reports whether the numbers of records or turns are running out, at some 2 GiB: there is room still for what comes until
// the index is made anew.
func (ix compactor) full() bool { return ix.lacks(64, 1<<16) }

// overfull reports whether a change may have no room.
func (ix compactor) overfull() bool {
	const most = 1 << 12 // turns that one change may add
	return ix.lacks(1, most)
}

// lacks reports whether so many chunks or turns more have no number.
func (ix compactor) lacks(chunks, turns int) bool {
	return len(ix.arena.chunks) >= maxChunks-chunks || len(ix.turns) > maxTurns-turns
}

// rebuilt returns a copy without tombstones, nor the memories that are to drop, that keeps at most the newest keep turns.
func (ix compactor) rebuilt(keep int, drop func(i int32) bool) *index {
	return ix.rebuiltWhile(nil, keep, drop)
}

// rebuiltWhile is rebuilt. There is no copy if goOn, which is asked before every turn, said no.
func (ix compactor) rebuiltWhile(goOn func() bool, keep int, drop func(i int32) bool) *index {
	alive := make([]int32, 0, ix.live)
	for n := range ix.turns {
		if ix.turns[n].flags&turnDead == 0 {
			alive = append(alive, int32(n))
		}
	}
	slices.SortStableFunc(alive, func(a, b int32) int { return cmp.Compare(ix.turns[a].time, ix.turns[b].time) })
	out := newIndex(ix.seed, ix.words)
	out.building = true
	out.omitted, out.spoken = ix.omitted, ix.spoken
	for _, n := range alive[:max(len(alive)-keep, 0)] {
		out.omitted += int64(ix.turns[n].count)
	}
	for _, n := range alive[max(len(alive)-keep, 0):] {
		if goOn != nil && !goOn() {
			return nil
		}
		t := ix.turns[n]
		ps := make([]passage, 0, t.count)
		for j := t.mem; j < t.mem+int32(t.count); j++ {
			if drop == nil || !drop(j) {
				ps = append(ps, ix.passage(j, t.traits))
			}
		}
		if len(ps) > 0 {
			out.put(ps)
		}
	}
	for c, conv := range ix.convs.list {
		if now, ok := out.convs.names.find(string(ix.convs.names.raw(uint32(c)))); ok && conv.project != 0 {
			out.convs.list[now].project = conv.project
		}
	}
	out.compact()
	return out
}

// compact ends the building of an index, and gives back what growing has reserved.
func (ix *index) compact() {
	ix.building = false
	if !ix.later {
		ix.learnOfEnough()
	}
	(listBuilder{ix}).compactLists()
	ix.posts, ix.turns, ix.briefs, ix.chains, ix.mems = clipped(ix.posts), clipped(ix.turns), clipped(ix.briefs), clipped(ix.chains), clipped(ix.mems)
	ix.convs.list, ix.convs.names.bytes, ix.convs.names.ends = clipped(ix.convs.list), clipped(ix.convs.names.bytes), clipped(ix.convs.names.ends)
	ix.terms.bytes, ix.terms.ends = clipped(ix.terms.bytes), clipped(ix.terms.ends)
	ix.work, ix.ids = nil, nil
	ix.widen()
	ix.arena.clip()
}

// clip gives back what the last chunk has reserved.
func (a *arena) clip() {
	if n := len(a.chunks); n > 0 {
		c := &a.chunks[n-1]
		a.size -= int64(cap(*c))
		*c = clipped(*c)
		a.size += int64(cap(*c))
	}
}

// clipped returns s with hardly any room behind it.
func clipped[S ~[]E, E any](s S) S {
	if cap(s)-len(s) < len(s)/16 {
		return s
	}
	return append(make(S, 0, roomy(len(s))), s...)
}

// roomy is what to reserve for n of something that grows slowly: without room, the first that is added would copy them all, and the
// first turn that is added to a large index all the postings of its words.
func roomy(n int) int { return n + n/64 }
