//go:build !amd64

package recall

// bounds fills out with the bounds of as many turns.
func (t *boundTables) bounds(out []int16, first, second []frequency, briefs []brief) {
	t.boundsByOne(out, first, second, briefs)
}

// overBounds sets the bits of over whose bounds are least or more.
func overBounds(bounds []int16, least int16, over []uint64) { overByOne(bounds, least, over) }
