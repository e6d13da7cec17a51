package text

import (
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

// stemmers are Snowball's.
var stemmers = [NumLanguages]func(*snowballstem.Env) bool{
	Unknown: english.Stem, English: english.Stem, German: german.Stem, French: french.Stem,
	Spanish: spanish.Stem, Italian: italian.Stem, Portuguese: portuguese.Stem, Dutch: dutch.Stem,
	Swedish: swedish.Stem, Danish: danish.Stem, Norwegian: norwegian.Stem, Finnish: finnish.Stem,
	Russian: russian.Stem, Turkish: turkish.Stem, Hungarian: hungarian.Stem, Romanian: romanian.Stem,
	Arabic: arabic.Stem,
}

// Stem returns the stem of a lower-case word: by a table for irregular English
// forms, else by Snowball, without accents. The script overrules the language.
func Stem(l Language, w string) string {
	if len(w) < 3 && IsASCII(w) {
		return w
	}
	r, _ := utf8.DecodeRuneInString(w)
	latin := unicode.Is(unicode.Latin, r)
	switch {
	case unicode.Is(unicode.Cyrillic, r):
		l = Russian
	case unicode.Is(unicode.Arabic, r):
		l = Arabic
	case !latin && !isDigit(w[0]):
		return w
	case l == Unknown || l == English || l == Russian || l == Arabic: // Latin letters in such a text are mostly English
		if base, ok := irregular[w]; ok {
			w = base
		}
		w = unaccented(w)
		l = English
	}
	env := snowballstem.NewEnv(w)
	stemmers[l](env)
	if l != English && latin {
		return unaccented(env.Current()) // people leave accents out
	}
	return env.Current()
}
