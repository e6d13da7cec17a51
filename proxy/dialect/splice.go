package dialect

import (
	"cmp"
	"slices"
)

// Splice returns the pieces of body with the insertions made, in order: written one after the other they are the new body.
// The pieces refer to body and to the insertions, nothing is copied. Insertions may come in any order; those at the same
// offset keep the order given, so put [System] ones first. Every At must lie in 0..len(body).
func Splice(body []byte, insertions []Insertion) [][]byte {
	byAt := func(a, b Insertion) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(insertions, byAt) {
		insertions = slices.Clone(insertions)
		slices.SortStableFunc(insertions, byAt)
	}
	pieces := make([][]byte, 0, 2*len(insertions)+1)
	done := 0
	for _, in := range insertions {
		if in.At > done {
			pieces = append(pieces, body[done:in.At])
			done = in.At
		}
		if len(in.Text) > 0 {
			pieces = append(pieces, in.Text)
		}
	}
	if done < len(body) {
		pieces = append(pieces, body[done:])
	}
	return pieces
}
