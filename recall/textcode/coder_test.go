package textcode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Any text survives encoding and decoding, also by a coder that was read from a
// table. Damaged codes are refused or decode to some text; nothing panics.
func TestCoderRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := make([]string, 3000)
	for i := range words {
		words[i] = fmt.Sprintf("%c%c%c%c", 'b'+i%20, 'a'+i/20%13, 'k'+i/260%12, 'a'+i%7)
	}
	text := func() []byte {
		var b []byte
		for range r.IntN(60) {
			b = append(append(b, ' '), words[int(r.ExpFloat64()*400)%len(words)]...)
			if r.IntN(30) == 0 {
				b = append(b, byte(r.IntN(256)), 0, "9.x:"[r.IntN(4)])
			}
		}
		return b
	}
	var texts [][]byte
	for range 4000 {
		texts = append(texts, text())
	}
	c := Learn(texts)
	if len(c.symbols) < 1000 {
		t.Fatalf("%d symbols, too few for codes of two bytes", len(c.symbols))
	}
	read, ok := ReadTable(c.AppendTable(nil))
	if !ok {
		t.Fatal("the table of a coder is refused")
	}
	var decoded []byte
	for range 2000 {
		want := text()
		codes := c.Encode(nil, want)
		if !bytes.Equal(read.Encode(nil, want), codes) {
			t.Fatalf("%q: the coder that was read from the table encodes it differently", want)
		}
		got, ok := c.Decode([]byte("before"), codes)
		if !ok || string(got) != "before"+string(want) {
			t.Fatalf("%q comes back as %q, %v", want, got, ok)
		}
		if len(codes) == 0 {
			continue
		}
		_, _ = c.Decode(decoded[:0], codes[:r.IntN(len(codes))])
		for range 5 {
			codes[r.IntN(len(codes))] = byte(r.IntN(256))
		}
		decoded, _ = c.Decode(decoded[:0], codes)
	}
	if _, ok := c.Decode(nil, []byte{1, literal}); ok {
		t.Error("a code without its second byte is accepted")
	}
	table := c.AppendTable(nil)
	for _, length := range []byte{0, maxSymbol + 1} {
		table[TableRow] = length
		if _, ok := ReadTable(table); ok {
			t.Errorf("a symbol of %d bytes is accepted", length)
		}
	}
	if _, ok := ReadTable(table[:len(table)-1]); ok {
		t.Error("a table that is cut short is accepted")
	}
	if _, ok := ReadTable(make([]byte, (maxSymbols+1)*TableRow)); ok {
		t.Error("a table of too many symbols is accepted")
	}
}
