package recall

import "golang.org/x/sys/cpu"

// bounds fills out with the bounds of as many turns.
func (t *boundTables) bounds(out []int16, first, second []frequency, briefs []brief) {
	n := 0
	if cpu.X86.HasAVX2 {
		if n = min(len(out), len(second)) &^ 31; n > 0 {
			boundsOf(&out[0], &first[:n][0], &second[0], &briefs[:n][0], n, t)
		}
	}
	t.boundsByOne(out[n:], first[n:], second[min(n, len(second)):], briefs[n:])
}

// overBounds sets the bits of over whose bounds are least or more. There are 64 bounds for each of over.
func overBounds(bounds []int16, least int16, over []uint64) {
	if cpu.X86.HasAVX2 && len(over) > 0 && least > 0 {
		overOf(&bounds[:len(over)<<6][0], least, &over[0], len(over))
		return
	}
	overByOne(bounds, least, over)
}

// boundsOf is boundTables.of for n turns, a multiple of 32.
//
//go:noescape
func boundsOf(out *int16, first, second *frequency, briefs *brief, n int, t *boundTables)

// overOf is overBounds for n words of over, with least above the lowest.
//
//go:noescape
func overOf(bounds *int16, least int16, over *uint64, n int)
