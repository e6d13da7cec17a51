package textcode

import (
	"math/rand/v2"
	"testing"
)

// decodeByOne decodes one code after the other.
func decodeByOne(c *Coder, codes []byte) (text []byte, ok bool) {
	for i := 0; i < len(codes); i++ {
		k := int(codes[i])
		if k >= wideCodes {
			if i++; i == len(codes) {
				return nil, false
			}
			if k == literal {
				text = append(text, codes[i])
				continue
			}
			k = wideCodes + (k-wideCodes)<<8 + int(codes[i])
		}
		if k >= len(c.symbols) {
			return nil, false
		}
		for j := range int(c.lengths[k]) {
			text = append(text, byte(c.symbols[k]>>(8*j)))
		}
	}
	return text, true
}

// Any codes, also damaged ones, decode as they do one by one.
func TestDecodeByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	good, bad := 0, 0
	for _, symbols := range []int{0, 1, 150, wideCodes, 300, maxSymbols} {
		c := &Coder{}
		for range symbols {
			n := 1 + r.IntN(maxSymbol)
			c.add((r.Uint64()|0x0101010101010101)<<(64-8*n)>>(64-8*n), n)
		}
		for range 3000 {
			codes := make([]byte, 0, 1200)
			for n := r.IntN([]int{4, 20, 600}[r.IntN(3)] + 1); n > 0; n-- {
				switch k := r.IntN(symbols + 20); {
				case k >= symbols:
					codes = append(codes, literal, byte(r.Uint32()))
				case k >= wideCodes:
					codes = append(codes, byte(wideCodes+(k-wideCodes)>>8), byte(k-wideCodes))
				default:
					codes = append(codes, byte(k))
				}
			}
			if len(codes) > 0 && r.IntN(3) == 0 {
				codes[r.IntN(len(codes))] = byte(r.Uint32())
				codes = codes[:r.IntN(len(codes)+1)]
			}
			want, ok := decodeByOne(c, codes)
			got, gotOK := c.Decode([]byte("before"), codes)
			if gotOK != ok || ok && string(got) != "before"+string(want) {
				t.Fatalf("%d symbols, %x: %q, %v, want %q, %v", symbols, codes, got, gotOK, want, ok)
			}
			if good++; !ok {
				bad++
			}
		}
	}
	if bad < good/20 || bad > good/2 {
		t.Errorf("%d of %d are damaged", bad, good)
	}
}
