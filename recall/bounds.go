package recall

import "math"

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
