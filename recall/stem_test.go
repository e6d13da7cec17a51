package recall

import (
	"strings"
	"testing"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// Words that are taken for their own stems are what the stemmer makes of them.
func FuzzOwnStem(f *testing.F) {
	for _, w := range []string{"roof", "piano", "abcdefgh", "yok", "ayah", "generaliza", "skix", "communa", "arsenk", "book", "yyyx", "hydro", "iowa", "oyo"} {
		f.Add(w)
	}
	for w := range stopWords {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, w string) {
		if !ownStem(w) {
			return
		}
		env := snowballstem.NewEnv(w)
		english.Stem(env)
		if got := env.Current(); got != w {
			t.Errorf("%q is taken for its own stem, and is %q", w, got)
		}
	})
}

// TestOwnStemEndings tries every ending of three letters behind beginnings of several shapes, and Snowball's exceptions.
func TestOwnStemEndings(t *testing.T) {
	try := func(w string) bool {
		if !ownStem(w) {
			return false
		}
		env := snowballstem.NewEnv(w)
		english.Stem(env)
		if got := env.Current(); got != w {
			t.Fatalf("%q is taken for its own stem, and is %q", w, got)
		}
		return true
	}
	for w := range strings.FieldsSeq(`skis skies dying lying tying idly gently ugly early only singly sky news howe atlas cosmos bias andes
		inning outing canning herring earring proceed exceed succeed`) {
		try(w)
	}
	tried, own := 0, 0
	for _, begin := range []string{"", "a", "ab", "bab", "yay", "babab", "commun", "gener", "arsen", "abaliz", "babfuln", "xyzabat", "babal"} {
		for i := range 26 * 26 * 26 {
			tried++
			if try(begin + string([]byte{byte('a' + i/676), byte('a' + i/26%26), byte('a' + i%26)})) {
				own++
			}
		}
	}
	if own < tried*3/4 {
		t.Errorf("only %d of %d are taken for their own stems", own, tried)
	}
}

func TestOwnStem(t *testing.T) {
	for w, want := range map[string]bool{"roof": true, "piano": true, "running": false, "table": false, "sky": false, "o'x": false, "café": false, "1x": false} {
		if got := ownStem(w); got != want {
			t.Errorf("%q: %v", w, got)
		}
	}
}
