package recall

import (
	"slices"
	"strings"
	"testing"
)

// FuzzPlainlyEnglish holds the quick look for English words against a plain one.
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
