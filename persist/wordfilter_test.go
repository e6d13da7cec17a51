package persist

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestWordFilter guards the filter's promise: whatever word eachWord finds in a text, the filter lets the text through.
func TestWordFilter(t *testing.T) {
	set := setOf("ignore a skip fur")
	f := newWordFilter(set)
	r := rand.New(rand.NewPCG(1, 1))
	pieces := []string{"ignore", "IGNORE", "Ignoré", "a", "à", "skip", "SKI", "P", "für", "f", "ur", "u\u0308r", "s\u212aip", " ", " ", ".", "'", "’", "l’", "-", "—", "_", "請", "\u0301", "\xff", "7", strings.Repeat("x", 50)}
	for range 50_000 {
		text := ""
		for range 1 + r.IntN(5) {
			text += pieces[r.IntN(len(pieces))]
		}
		for w := range eachWord(text) {
			if set[w.folded] && !f.in(text) {
				t.Fatalf("%q holds %q and is not let through", text, w.folded)
			}
		}
	}
	for _, text := range []string{"", "ignored", "skipper", "x", "fu r", "fûrs"} {
		if f.in(text) {
			t.Errorf("%q is let through", text)
		}
	}
	for from, parts := range lexicon.contractions { // which are not read by letters
		for _, w := range parts {
			if attemptWords.words[w] && !attemptWords.in(from) {
				t.Errorf("%q stands for %q and is not let through", from, w)
			}
		}
	}
	for from, w := range lexicon.elisions {
		if attemptWords.words[w] && !attemptWords.in(from) {
			t.Errorf("%q stands for %q and is not let through", from, w)
		}
	}
}
