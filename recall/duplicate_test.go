package recall

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// Two passages are alike if they share nine tenths of their distinct terms, in
// any order, and none of the other terms is a number.
func TestAlikeBySets(t *testing.T) {
	ix := newIndex(1, text.NewAnalyzer(16))
	for len(ix.posts) < 400 {
		n := len(ix.posts)
		ix.term(string([]byte{"a1b2c"[n%5], byte('a' + n%26), byte('a' + n/26)}))
	}
	r := rand.New(rand.NewPCG(7, 8))
	var both termTable
	alike := 0
	for range 20_000 {
		from, size := uint32(r.IntN(2)*100), 1+r.IntN(60)
		pack := func(of []uint32) *taken {
			found := &taken{}
			for _, id := range of {
				found.packed = binary.AppendUvarint(found.packed, uint64(id))
			}
			return found
		}
		var a []uint32
		for range size {
			a = append(a, from+uint32(r.IntN(size*2)))
		}
		b := append([]uint32(nil), a...)
		for range r.IntN(4) {
			b[r.IntN(size)] = from + uint32(r.IntN(size*2))
		}
		r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		in := map[uint32]int{}
		for _, id := range a {
			in[id] |= 1
		}
		for _, id := range b {
			in[id] |= 2
		}
		delete(in, text.MarkStatement)
		delete(in, text.MarkQuestion)
		same, numbers := 0, 0
		for id, which := range in {
			if which == 3 {
				same++
			} else if query.IsDigit(ix.spelled(id)[0]) {
				numbers++
			}
		}
		want := same > 0 && same*10 >= len(in)*9 && numbers == 0
		if got := (ranker{ix}).alike(pack(a), pack(b), &both); got != want {
			t.Fatalf("%v and %v: %v, want %v", a, b, got, want)
		}
		if want {
			alike++
		}
	}
	if alike < 1000 || alike > 19_000 {
		t.Errorf("%d alike: too few cases for a test", alike)
	}
}
