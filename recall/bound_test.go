package recall

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzBounds holds the bounds and the bits of many turns at once against those one by one.
func FuzzBounds(f *testing.F) {
	f.Add(uint64(1), uint16(31), uint16(0), int16(1))
	f.Add(uint64(2), uint16(1000), uint16(50), int16(9000))
	f.Add(uint64(3), uint16(4097), uint16(4097), int16(mostBound))
	f.Fuzz(func(t *testing.T, seed uint64, turns, missing uint16, least int16) {
		r := rand.New(rand.NewPCG(seed, 2))
		some := func(to []uint8, most int) {
			for i := range to {
				to[i] = uint8(r.IntN(most + 1))
			}
		}
		tables := boundTables{base: int16(r.IntN(mostBound >> r.IntN(8))), userShift: uint16(r.IntN(5)), asstShift: uint16(r.IntN(5))}
		for i := range tables.words {
			w, most := &tables.words[i], 255>>r.IntN(4)
			some(w.lower[:], most)
			some(w.upper[:], most)
			some(w.assistant[:], most)
		}
		some(tables.userLen[:], mostLength)
		some(tables.asstLen[:], mostLength)
		some(tables.low[:], 255)
		some(tables.high[:], 255)
		n := int(turns)
		first, second, briefs := make([]frequency, n), make([]frequency, max(n-int(missing), 0)), make([]brief, n)
		for i := range n {
			first[i], briefs[i] = frequency(r.Uint32()), brief(r.Uint32())
		}
		for i := range second {
			second[i] = frequency(r.Uint32())
		}
		got, want := make([]int16, n, (n+63)&^63), make([]int16, n)
		tables.bounds(got, first, second, briefs)
		tables.boundsByOne(want, first, second, briefs)
		if !slices.Equal(got, want) {
			t.Fatalf("bounds %v, one by one %v", got, want)
		}
		got = got[:cap(got)]
		over, byOne := make([]uint64, len(got)/64), make([]uint64, len(got)/64)
		overBounds(got, least, over)
		overByOne(got, least, byOne)
		if !slices.Equal(over, byOne) {
			t.Fatalf("%x are over %d, one by one %x", over, least, byOne)
		}
	})
}
