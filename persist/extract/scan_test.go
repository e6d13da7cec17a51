package extract

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestScanFindsAttemptWords checks that scan flags every text in which eachWord
// finds one of attemptWords.
func TestScanFindsAttemptWords(t *testing.T) {
	set := attemptWords
	through := func(text string) bool { return scan(text).mayInstruct() }
	r := rand.New(rand.NewPCG(1, 1))
	pieces := []string{"ignore", "IGNORE", "Ignoré", "a", "à", "forget", "FOR", "GET", "für", "f", "ur", "u\u0308r", "s\u212aip", " ", " ", ".", "'", "’", "l’", "-", "—", "_", "請", "\u0301", "\xff", "7", strings.Repeat("x", 50)}
	for range 50_000 {
		text := ""
		for range 1 + r.IntN(5) {
			text += pieces[r.IntN(len(pieces))]
		}
		for w := range eachWord(text) {
			if set[w.folded] && !through(text) {
				t.Fatalf("%q holds %q and is not flagged", text, w.folded)
			}
		}
	}
	for _, text := range []string{"", "forgetful", "x", "for get"} {
		if through(text) {
			t.Errorf("%q is flagged", text)
		}
	}
	for from, parts := range lexicon().contractions { // which are not runs of letters
		for _, w := range parts {
			if set[w] && !through(from) {
				t.Errorf("%q stands for %q and is not flagged", from, w)
			}
		}
	}
	for from, w := range lexicon().elisions {
		if set[w] && !through(from) {
			t.Errorf("%q stands for %q and is not flagged", from, w)
		}
	}
}
