package recall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzBlocks holds what is read of many characters at once against what is read of each.
func FuzzBlocks(f *testing.F) {
	var all strings.Builder
	for c := range 256 {
		all.WriteByte(byte(c))
	}
	for _, n := range []int{0, 1, 31, 32, 33, 63, 64, 65, 128, 200, 256} {
		f.Add(all.String()[:n])
		f.Add(strings.Repeat("It's a.b: \r\n 3_4!", 20)[:n])
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := (len(s) + blockSize - 1) / blockSize
		got, want := make([]block, n), make([]block, n)
		for i := range got {
			got[i] = block{^uint64(0), 1, 2, 3}
		}
		high, wantHigh := readBlocks(got, s), readBlocksOneByOne(want, s)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{})); diff != "" || high != wantHigh {
			t.Errorf("%q: all %x, want %x; blocks (-one by one +at once)\n%s", s, high, wantHigh, diff)
		}
	})
}
