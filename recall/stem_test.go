package recall

import (
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

func TestOwnStem(t *testing.T) {
	for w, want := range map[string]bool{"roof": true, "piano": true, "running": false, "table": false, "sky": false, "o'x": false, "café": false, "1x": false} {
		if got := ownStem(w); got != want {
			t.Errorf("%q: %v", w, got)
		}
	}
}
