package textcode

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// SeenWords encodes like the coder, words that it has seen and new ones.
func TestSeenWords(t *testing.T) {
	var texts [][]byte
	for i := range 3000 {
		texts = append(texts, fmt.Appendf(nil, "I told you about the %d ferries to Lisbon (%032x) d'être, İx\x00\x00y", i%37, i))
	}
	c, seen := Learn(texts), new(SeenWords)
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = " etaoin\x00é'9"[r.IntN(12)]
		}
		texts = append(texts, b)
	}
	for _, text := range texts {
		want := c.Encode(nil, text)
		for range 2 {
			if got := seen.Encode(c, []byte{1}, text); !slices.Equal(got[1:], want) || got[0] != 1 {
				t.Fatalf("%q: got %v, want %v", text, got, want)
			}
		}
	}
}

func TestFirstWord(t *testing.T) {
	for text, want := range map[string]int{
		" the cat": 4, "the cat ": 3, "(the) a ": 4, "  the ca": 2, "a1234567": 8, "1a234567": 2, " interna": 8, "Zzz@Aa[`": 3, "aé\xff{{{{{": 4, "\x00\x00aaaaaa": 2,
		"\n\n- The ": 4, ". 3.14 a": 7,
	} {
		word, n := firstWord(binary.LittleEndian.Uint64([]byte(text)))
		if n != want || string(binary.LittleEndian.AppendUint64(nil, word)[:n]) != text[:n] || word>>(8*n) != 0 {
			t.Errorf("%q: %d bytes of %x, want %d", text, n, word, want)
		}
	}
}

// What is coded comes back, whatever the text; codes that are cut off or made
// up are refused or give some text, never a fault.
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
	if len(c.Symbols) < 1000 {
		t.Fatalf("%d symbols, too few for codes of two bytes", len(c.Symbols))
	}
	var decoded []byte
	for range 2000 {
		want := text()
		codes := c.Encode(nil, want)
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
		t.Error("a code is cut off and nobody noticed")
	}
}
