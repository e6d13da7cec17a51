package recall

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// filterPostings returns exactly the postings of turns in the set.
func TestFilterPostings(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	kept := 0
	for range 3000 {
		far, every := pick(1, 20, 100, 300, 2000, 40_000), 1+r.IntN(12)
		var p postings
		var want []uint32
		n := r.IntN(far)
		for range r.IntN(pick(4, 40, 400, 4000)) {
			if n >= maxTurns {
				break
			}
			f := frequency(r.IntN(256))
			p.add(uint32(n), f)
			if r.IntN(every) == 0 {
				want = append(want, uint32(n)<<8|uint32(f))
			}
			if n += 1 + r.IntN(far); r.IntN(8) == 0 {
				n += r.IntN(200)
			}
		}
		set := make(bitset, p.last/64+1) // as small as can be
		for _, e := range want {
			set.set(int32(e >> 8))
		}
		got := filterPostings([]uint32{7}, p.buf, set)
		if got[0] != 7 || !slices.Equal(got[1:], want) {
			t.Fatalf("of %d postings up to turn %d there came %d, want %d", p.df, p.last, len(got)-1, len(want))
		}
		kept += len(want)
	}
	if kept < 100_000 {
		t.Errorf("only %d kept: this tests little", kept)
	}
}
