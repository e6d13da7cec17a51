package text

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

// FuzzPlainlyEnglish compares plainlyEnglish to a simple search.
func FuzzPlainlyEnglish(f *testing.F) {
	words := strings.Fields(`the and are what when where who how why did does my you your with this that they from about which can could would should were been`)
	for _, w := range words {
		f.Add(w)
		f.Add(strings.ToUpper(w) + "'s")
		f.Add("abc def_" + w)
		f.Add(w + "x")
		f.Add("eightlet " + strings.Repeat("ab ", 62) + w)
		f.Add("nineletter" + w + strings.Repeat(" a1", 63) + w)
	}
	f.Add("@the{[them]")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.Map(func(r rune) rune { return r & 0x7f }, s)
		all := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r < 'a' || r > 'z' })
		want := slices.ContainsFunc(all[:min(len(all), detectWords)], func(w string) bool { return slices.Contains(words, w) })
		if got := plainlyEnglish(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	})
}

// FuzzNextWord compares nextWord and revealed to a simple split and lookup.
func FuzzNextWord(f *testing.F) {
	for _, s := range []string{
		"", "'", " a", "Où est l’ami DE l'Été?", "ÜBER dem\xff Haus\xc3", "\u212aein K", "counterrevolutionaries'' und", "user_name 3rd of — it’s",
		strings.Repeat("é ", detectWords) + "the", strings.Repeat("the ", detectWords+1),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rest := s
		for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) {
			var got string
			if got, rest = nextWord(rest); got != w {
				t.Fatalf("%q: word %q, want %q", s, got, w)
			}
			if got, want := revealed(w), languagesOf[strings.ToLower(w)]; !slices.Equal(got, want) {
				t.Fatalf("%q is of languages %d, want %d", w, got, want)
			}
		}
		if got, _ := nextWord(rest); got != "" {
			t.Fatalf("%q: word %q too many", s, got)
		}
	})
}
