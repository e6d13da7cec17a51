package recall

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// What the memory of words gives is what the coder gives by itself, for words that have come before and for new ones.
func TestSeenWordsAreCodedTheSame(t *testing.T) {
	var texts [][]byte
	for _, m := range town(3000) {
		texts = append(texts, []byte(m.Text+" ("+m.Provenance.Turn+") d'être, İx\x00\x00y"))
	}
	c, seen := learn(texts), new(seenWords)
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = " etaoin\x00é'9"[r.IntN(12)]
		}
		texts = append(texts, b)
	}
	for _, text := range texts {
		want := c.encode(nil, text)
		for range 2 {
			if got := seen.encode(c, []byte{1}, text); !slices.Equal(got[1:], want) || got[0] != 1 {
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

// An index that is built from records learns when it is complete, though it has less text than it would wait for.
func TestBuiltIndexLearns(t *testing.T) {
	e, _ := newEngine(t, patient(), town(6000))
	recallIDs(t, e, Request{Newest: "hello"})
	v, _ := e.scopes.Load(alice)
	ix := v.(*scopeIndex).ix
	if ix.plain < learnFrom || ix.plain >= learnLate {
		t.Fatalf("%d bytes of text prove nothing", ix.plain)
	}
	if ix.building || ix.coder == nil {
		t.Errorf("building %v, coder %v", ix.building, ix.coder)
	}
}
