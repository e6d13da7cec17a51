package recall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzReadingForAnIndex: what is read for an index is what is read without one, however few words are remembered.
func FuzzReadingForAnIndex(f *testing.F) {
	for _, m := range town(20) {
		f.Add(m.Text)
	}
	odd := "I'd PREFER tea, please! It's user_service.go:8080 \"v2.3\"; (see a.b) - 3.14?\r\nOn 2019-05-06 Der Hund schläft. " +
		strings.Repeat("abcdefgh", 3) + " abcdefgh abcdefghi counterrevolution " + strings.Repeat("x", maxWord+1) + " end"
	for i := range len(odd) {
		f.Add(odd[i:])
	}
	mixed := "I’d say — “please” — Café\u0301.\r\nÜber 3rd a.b naïve \u0301x  \u0308\u1680 \u1680a 1\u00ad.5 🇩🇪🇫🇷 👩\u200d💻 ok?\r東京の cat. é\rI prefer tea… x\u200d.y שלום\"ה' \xe2\x80 z"
	for i := range blockSize { // wherever a block ends
		f.Add(strings.Repeat("x", i) + " " + mixed + " " + mixed + " the end")
		f.Add(strings.Repeat(" ", i) + "user.name it's 3rd 4x_y 5a _b __ a:b 6.7 c.\r\nd counterrevolutionary abcdefghijklmnop Q " + strings.Repeat("-", blockSize))
	}
	for _, s := range []string{"0\n\xc3", "tea\xe0\n", "tea \xf0 x"} { // none of them whole at the end
		f.Add(s)
	}
	f.Add("tea.\u200e Milk.\u0301 .\u00ad") // no signs, by themselves
	for i := range mixed {
		f.Add(mixed[i:])
		f.Add(mixed[:i] + " it's " + mixed[i:])
	}
	for _, s := range []string{
		"", "?", "a", strings.Repeat("a", 64), strings.Repeat("a", 63) + "\n" + strings.Repeat("b", 63) + ".c " + strings.Repeat("d", maxWord),
		strings.Repeat("x", 60) + ".md:2 and" + strings.Repeat("y_", 40) + " z", "def\n\nghi\n  return 1\n" + strings.Repeat(" ", 64) + "\r\n\r.",
		"Please Always tell Ada. please Never. I really do prefer it", "\x00\x7f!\"#$%&()*+-/<=>?@[]^`{|}~a.'b", "我们的 rest’s ＡＢＣ ünder l'enfant dell'arte",
	} {
		f.Add(s)
		f.Add(s + strings.Repeat(" the end of it", 9))
	}
	type reader struct {
		ix *index
		of *analyzer
	}
	var readers []reader
	for _, words := range []int{knownAside, 64, loadWords} {
		ix := newIndex(1, nil)
		readers = append(readers, reader{ix, newAnalyzerOf(ix, words)})
	}
	plain := newAnalyzer(cachedWords)
	f.Fuzz(func(t *testing.T, text string) {
		var got, want analysis
		for _, r := range readers {
			for _, otherwise := range []language{langEnglish, langFrench} {
				r.of.analyze(text, otherwise, &got)
				plain.analyze(text, otherwise, &want)
				var terms []string
				for _, n := range got.numbers {
					terms = append(terms, r.ix.spelled(n))
				}
				if diff := cmp.Diff(want.terms, terms, cmpopts.EquateEmpty()); diff != "" || got.traits != want.traits || got.language != want.language {
					t.Fatalf("%d words remembered, %q: traits %b, want %b; language %d, want %d; terms (-plain +for an index)\n%s",
						knownAside*len(r.of.of.known), text, got.traits, want.traits, got.language, want.language, diff)
				}
			}
		}
	})
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
