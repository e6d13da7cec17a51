package recall

import (
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"
)

// stem reduces a lower-case word to its stem: irregular English forms by table, the rest by Snowball (Porter's English
// stemmer, the Russian one for Cyrillic script).
func stem(w string) string {
	if base, ok := irregular[w]; ok {
		w = base
	}
	r, _ := utf8.DecodeRuneInString(w)
	switch {
	case isASCII(w):
		if len(w) < 3 {
			return w
		}
		env := snowballstem.NewEnv(w)
		english.Stem(env)
		return env.Current()
	case unicode.Is(unicode.Cyrillic, r):
		env := snowballstem.NewEnv(w)
		russian.Stem(env)
		return env.Current()
	}
	return w
}
