package recall

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/zeebo/xxh3"
)

// A table finds what it contains and nothing else, after any additions and
// removals, and rarely compares numbers other than the one it finds.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	key := func(n uint32) uint64 { return xxh3.Hash([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) }
	for _, far := range []uint32{0, 1 << 20, 1<<32 - 20_000} { // numbers need not begin at 0, nor follow on each other
		var table table
		held := map[uint32]bool{}
		for range 20_000 {
			n := far + r.Uint32N(10_000)
			if held[n] {
				table.remove(key(n), n)
				delete(held, n)
			} else {
				table.add(key(n), n, key)
				held[n] = true
			}
		}
		compared := 0
		for n := far; n < far+10_000; n++ {
			got, ok := table.find(key(n), func(m uint32) bool { compared++; return m == n })
			if ok != held[n] || ok && got != n {
				t.Fatalf("%d: got %d, %v, want %v", n, got, ok, held[n])
			}
		}
		if spare := compared - len(held); far < 1<<21 && spare > 1000 {
			t.Errorf("from %d on: %d needless comparisons", far, spare)
		}
	}
}

// An id of 32 hex digits is hashed as 16 bytes. An id of that length with any
// other character is hashed as text.
func TestHashUsualID(t *testing.T) {
	const seed = 7
	const id = "00112233445566778899aabbccddeeff"
	raw, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	if hashID(seed, id) != hashRaw(seed, raw, true) || hashID(seed, []byte(id)) != hashRaw(seed, raw, true) {
		t.Error("hex is not hashed as its bytes")
	}
	for at := range id {
		for _, c := range []byte{'A', 'F', 'g', '/', ':', '`', ' ', 0, 0xff} {
			odd := id[:at] + string([]byte{c}) + id[at+1:]
			if hashID(seed, odd) != hashRaw(seed, []byte(odd), false) {
				t.Fatalf("%q is not hashed as text", odd)
			}
		}
	}
}
