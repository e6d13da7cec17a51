package recall

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the memory of words gives is what the coder gives by itself, for words
// that have come before and for new ones.
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

// An index that is built from records codes its texts when it has answered,
// though it has less of them than it would wait for. What comes and goes
// meanwhile is as if it had been there before.
func TestBuiltIndexLearns(t *testing.T) {
	ms := town(6000)
	e, _ := newEngine(t, patient(), ms[:5000])
	ix, _, _, err := e.loader.build(t.Context(), &slot{scope: alice})
	if err != nil {
		t.Fatal(err)
	}
	if ix.coder != nil || ix.building || ix.plain < learnFrom {
		t.Fatalf("building %v, coder %v, %d bytes of text", ix.building, ix.coder, ix.plain)
	}
	plain := ix.bytes()
	records, mems := ix.arena, ix.mems
	c := codeRecords(&records, mems)
	for i := 5000; i < len(ms); i++ {
		ix.apply(e.reader.change(ms[i].Provenance.Turn, ms[i:i+1]))
	}
	ix.apply(change{removed: []string{ms[7].ID}})
	all := func() (texts []string) {
		for i := range ix.mems {
			texts = append(texts, ix.memory(int32(i), alice).Text)
		}
		return texts
	}
	want, before := all(), ix.bytes()
	if ix.coder != nil {
		t.Error("an Add had to code all texts")
	}
	ix.take(c)
	if diff := cmp.Diff(want, all()); diff != "" {
		t.Errorf("texts (-plain +coded)\n%s", diff)
	}
	if now := ix.bytes(); now > before*9/10 || len(ix.mems) <= len(mems) {
		t.Errorf("%d memories in %d bytes, %d in %d before", len(ix.mems), now, len(mems), before)
	}

	recallIDs(t, e, Request{Newest: "hello"})
	s := resting(t, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	chunks := s.ix.arena.chunks
	if last := chunks[len(chunks)-1]; cap(last)-len(last) > len(last)/16+4<<10 {
		t.Errorf("%d bytes of records have room for %d more", len(last), cap(last)-len(last))
	}
	if now := s.ix.bytes(); s.ix.coder == nil || s.ix.later || now > plain*9/10 || s.counted.Load() != now+slotOverhead {
		t.Errorf("%d bytes, of which %d are counted, %d before its texts were to be coded; left to do: %v", now, s.counted.Load(), plain, s.ix.later)
	}
}
