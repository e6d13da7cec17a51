package recall

import (
	"cmp"
	"math"
	"slices"
)

// Estimates of what the runtime needs besides the counted buffers, in bytes.
const (
	postOverhead  = 40 + 8
	turnOverhead  = 48 + 4
	memOverhead   = 8
	convOverhead  = 24
	shapeOverhead = 250 // it is also a key of a map
)

// bytes estimates the heap that the index uses.
func (ix *index) bytes() int64 {
	return ix.arena.size + ix.terms.held() + int64(cap(ix.posts))*postOverhead + ix.postBytes + ix.log.bytes() + ix.shapeBytes +
		int64(cap(ix.turns))*turnOverhead + int64(cap(ix.mems))*memOverhead + int64(cap(ix.convs.list))*convOverhead + ix.convs.names.held() +
		int64(4*len(ix.byTurn.slots)+4*len(ix.byID.slots)) + ix.coder.Held() + 1024
}

// compactor rebuilds an index that wastes memory or exceeds its limit. The
// index itself stays as it is.
type compactor struct{ *index }

// wasteful reports whether a rebuild would free a good part of the memory.
func (ix compactor) wasteful() bool { return ix.dead > 64 && ix.dead > ix.live/3 }

// full reports whether the numbers of records or turns are running out, at some
// 2 GiB. There is still room for what arrives until the index is rebuilt.
func (ix compactor) full() bool { return ix.lacks(64, 1<<16) }

// overfull reports whether a change may not fit.
func (ix compactor) overfull() bool {
	const maxAdded = 1 << 12 // turns of one change
	return ix.lacks(1, maxAdded)
}

// lacks reports whether there are no numbers for so many more chunks or turns.
func (ix compactor) lacks(chunks, turns int) bool {
	return len(ix.arena.chunks) >= maxChunks-chunks || len(ix.turns) > maxTurns-turns
}

// rebuilt returns a copy without tombstones and without the memories to drop,
// with at most the newest keep turns.
func (ix compactor) rebuilt(keep int, drop func(i int32) bool) *index {
	return ix.rebuiltWhile(nil, keep, drop)
}

// rebuiltWhile is rebuilt. It returns nil if proceed, called before every turn,
// returns false.
func (ix compactor) rebuiltWhile(proceed func() bool, keep int, drop func(i int32) bool) *index {
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
		if proceed != nil && !proceed() {
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

// compact finishes building an index and trims what growing has reserved.
func (ix *index) compact() {
	ix.building = false
	if !ix.later {
		ix.learnOfEnough()
	}
	(listBuilder{ix}).compactLists()
	ix.posts, ix.turns, ix.headers, ix.mems = clipped(ix.posts), clipped(ix.turns), clipped(ix.headers), clipped(ix.mems)
	ix.convs.list, ix.convs.names.bytes, ix.convs.names.ends = clipped(ix.convs.list), clipped(ix.convs.names.bytes), clipped(ix.convs.names.ends)
	ix.terms.bytes, ix.terms.ends = clipped(ix.terms.bytes), clipped(ix.terms.ends)
	ix.work, ix.ids = nil, nil
	ix.arena.clip()
}

// clip trims the last chunk.
func (a *arena) clip() {
	if n := len(a.chunks); n > 0 {
		c := &a.chunks[n-1]
		a.size -= int64(cap(*c))
		*c = clipped(*c)
		a.size += int64(cap(*c))
	}
}

// clipped returns s with hardly any spare capacity.
func clipped[S ~[]E, E any](s S) S {
	if cap(s)-len(s) < len(s)/16 {
		return s
	}
	return append(make(S, 0, roomy(len(s))), s...)
}

// roomy returns the capacity for n of something that grows slowly. Without
// spare capacity, the first addition would copy everything.
func roomy(n int) int { return n + n/64 }

// unfit reports whether the index is to be rebuilt.
func (ix compactor) unfit(limit int64) bool {
	return ix.wasteful() || (ix.bytes() > limit || ix.full()) && ix.live > 1
}

// fitted returns the index, or a rebuilt copy if it wastes memory or exceeds
// its limit; then the oldest turns are left out, down to nine tenths of it. It
// returns nil if goOn, which is called before every turn, returned false.
func (ix compactor) fitted(limit int64, goOn func() bool) *index {
	keep := math.MaxInt
	for ix.index != nil && ix.unfit(limit) {
		// An index whose texts are not coded yet may fit once they are.
		if b := ix.bytes(); (b > limit || ix.full()) && !ix.later {
			share := 0.9 * min(float64(limit)/float64(b), 1)
			keep = max(min(int(float64(ix.live)*share), ix.live-1), 1)
		}
		ix.index = ix.rebuiltWhile(goOn, keep, nil)
	}
	return ix.index
}
