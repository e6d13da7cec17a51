package ledger

import (
	"math/rand/v2"
	"testing"
)

// The marks never hide an entry, however entries come and go, and let few pass
// that are not there.
func TestMarks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := &Entries{entries: map[Hash]*entry{}}
	hash := func() Hash { return Hash{Hi: r.Uint64(), Lo: r.Uint64()} }
	look := func() {
		t.Helper()
		for h, e := range s.entries {
			if s.at(h) != e {
				t.Fatalf("the entry for %v is hidden among %d", h, len(s.entries))
			}
		}
	}
	for _, most := range []int{10, 1000, 5000, minFiltered / 2, 3000} {
		for h := range s.entries { // as much as a shrink or a sweep drops, and more
			if len(s.entries) > most/2 {
				delete(s.entries, h)
			}
		}
		look()
		for len(s.entries) < most {
			s.set(hash(), &entry{})
			if r.IntN(20) == 0 {
				for h := range s.entries { // in the place of another
					s.set(h, &entry{})
					break
				}
			}
			if r.IntN(50) == 0 {
				look()
			}
		}
		look()
		passed := 0
		for range 1000 {
			if s.filter.mayContain(hash()) {
				passed++
			}
		}
		if most >= 2*minFiltered && passed > 80 {
			t.Errorf("%d entries: %d of 1000 others pass, want 80 at most", most, passed)
		}
	}
}
