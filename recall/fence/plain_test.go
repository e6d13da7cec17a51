package fence

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// needBlocks: without AVX2 there is one way only, and nothing to compare it with.
func needBlocks(tb testing.TB) {
	tb.Helper()
	if !hasPlainBlocks() {
		tb.Skip("the processor has no AVX2")
	}
}

// What the processor can do at once changes nothing, wherever something stands that matters.
func TestPlainBlocks(t *testing.T) {
	needBlocks(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	const usual = "for a more remarkable summer, her 3 dear friends' \"memory\" re (most); or e.m."
	words := strings.Fields("Remora memory r e m o ra mem ory the re-mo r. r, re R.E R-e-M rem rm 12 zr rz")
	for range 50_000 {
		b := []byte(strings.Repeat(usual, 4)[rnd.IntN(len(usual)):][:rnd.IntN(200)])
		for range rnd.IntN(3) {
			if len(b) > 0 {
				b[rnd.IntN(len(b))] = byte(rnd.IntN(256))
			}
		}
		if at := rnd.IntN(len(b) + 1); rnd.IntN(2) == 0 {
			b = append(append(b[:at:at], words[rnd.IntN(len(words))]...), b[at:]...)
		}
		if at := rnd.IntN(len(b) + 1); rnd.IntN(4) == 0 { // the name, or nearly, with signs in it
			var name []byte
			for _, c := range []byte("remoramemory") {
				name = append(name, c&^(byte(rnd.IntN(2))<<5))
				if rnd.IntN(4) == 0 {
					name = append(name, " -._:"[rnd.IntN(5)])
				}
				switch rnd.IntN(40) {
				case 0:
					name[len(name)-1] = byte(rnd.IntN(256))
				case 1, 2, 3, 4:
					name = append(name[:len(name)-1], "é"...)
				}
			}
			b = append(append(b[:at:at], name...), b[at:]...)
		}
		text := string(b)
		end := rnd.IntN(len(text) + 1)
		if rnd.IntN(2) == 0 {
			end = len(text)
		}
		checkBlocks(t, text, end)
		checkShortcut(t, text)
	}
}

// checkShortcut compares what the short cut makes of text with what the long way does.
func checkShortcut(t *testing.T, text string) {
	t.Helper()
	for _, limit := range []int{maxLine, 16} {
		if got, ok := shortcut(text, limit); ok && got != longWay(text, limit) {
			t.Fatalf("%q: got %q, the long way makes %q", text, got, longWay(text, limit))
		}
	}
}

func checkBlocks(t *testing.T, text string, end int) {
	t.Helper()
	if end < plainLeast {
		return
	}
	if got, want := plainBy(text, end, true), plainBy(text, end, false); got != want {
		t.Fatalf("%q to %d: got %t, want %t", text, end, got, want)
	}
	// What is left out by the way is nothing that matters, whatever follows.
	n := plainBlocks(text[:end])
	for i := range n {
		if look := looks[text[i]]; look != looksPlain && look != looksSpace && (look != looksLikeName || i < n-plainAhead && mayName(text[i:])) {
			t.Fatalf("%q: byte %d of %d is left out", text[:end], i, n)
		}
		if text[i] == ' ' && text[i+1] == ' ' {
			t.Fatalf("%q: a second blank after %d is left out", text[:end], i)
		}
	}
}

// Every byte by itself, at every place of a text of ordinary words: what is odd is never left out, and what ordinary text
// consists of is.
func TestPlainBlocksEveryByte(t *testing.T) {
	needBlocks(t)
	const text = "The quick brown fox jumps over the lazy dog; then it sits down by a tall old oak tree to sleep"
	if n := plainBlocks(text); n != len(text)-plainAhead {
		t.Fatalf("ordinary text is looked at from %d on", n)
	}
	for at := range text {
		for c := range 256 {
			changed := text[:at] + string([]byte{byte(c)}) + text[at+1:]
			checkBlocks(t, changed, len(changed))
			checkShortcut(t, changed)
			odd := c < ' ' || c >= 0x7f || c == '<' || c == '[' || c == '|'
			if n := plainBlocks(changed); odd && n > at {
				t.Fatalf("byte %#x at %d is left out: %d are", c, at, n)
			}
		}
	}
}

func FuzzPlainBlocks(f *testing.F) {
	f.Add("My daughter Mia is allergic to peanuts, and her memory of the summer in Rome remains", 60)
	f.Add("a longer text of which the rémora-memory begins here: remora-memory-0123456789ab ends", 80)
	needBlocks(f)
	f.Fuzz(func(t *testing.T, text string, end int) {
		if end < 0 || end > len(text) {
			end = len(text)
		}
		checkBlocks(t, text, end)
		checkShortcut(t, text)
	})
}
