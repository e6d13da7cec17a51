package recall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is read for an index is what is read without one, however few words are remembered.
func TestReadingForAnIndex(t *testing.T) {
	var texts []string
	for _, m := range town(800) {
		texts = append(texts, m.Text)
	}
	texts = append(texts, "I'd PREFER tea, please! It's user_service.go:8080 \"v2.3\"; (see a.b) - 3.14?\r\nOn 2019-05-06 Der Hund schläft. "+
		strings.Repeat("abcdefgh", 3)+" abcdefgh abcdefghi counterrevolution "+strings.Repeat("x", maxWord+1)+" end")
	for _, words := range []int{knownAside, 64, loadWords} {
		ix := newIndex(1, nil)
		of, plain := newAnalyzerOf(ix, words), newAnalyzer(cachedWords)
		var got, want analysis
		for _, text := range texts {
			of.analyze(text, langEnglish, &got)
			plain.analyze(text, langEnglish, &want)
			var terms []string
			for _, n := range got.numbers {
				terms = append(terms, ix.spelled(n))
			}
			if diff := cmp.Diff(want.terms, terms); diff != "" || got.traits != want.traits || got.hints != want.hints {
				t.Fatalf("%d words remembered, %q: traits %b, want %b; hints %b, want %b; terms (-plain +for an index)\n%s",
					words, text, got.traits, want.traits, got.hints, want.hints, diff)
			}
		}
	}
}

// A word that is remembered, or taken from what is known of it without its capital, is what reading it gives.
func TestCapitalsAreReadOnce(t *testing.T) {
	for l := range languages {
		a := newAnalyzer(1 << 10)
		for w := range strings.FieldsSeq("I May Went Running Haus Was Prefer Always Yesterday March Mice A The Monday's iPhone L'ami Über 3rd 2019 Ada running may") {
			for range 2 {
				got, want := a.word(l, w), readWord(l, w)
				if diff := cmp.Diff(want.terms, got.terms); diff != "" || got.traits != want.traits || got.hints != want.hints || got.standing != want.standing ||
					got.hash != a.hash(l, w) || want.sole != got.sole {
					t.Errorf("%s in language %d: %+v, want %+v", w, l, got, want)
				}
			}
		}
	}
}
