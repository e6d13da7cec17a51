package text

import (
	"testing"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

func snowballEnglish(w string) string {
	env := snowballstem.NewEnv(w)
	english.Stem(env)
	return env.Current()
}

// FuzzStemEnglish holds the stemmer against Snowball's own.
func FuzzStemEnglish(f *testing.F) {
	for _, w := range []string{
		"roof", "abcdefgh", "yok", "generaliza", "skix", "communa", "arsenk", "yyyx", "oyo", "sayings", "ties", "dies", "gas", "kiwis", "this", "gaps",
		"hoping", "hopping", "luxuriated", "agreed", "feedly", "speedly", "happyly", "by", "say", "cry", "conditional", "rationalization", "apologi", "geologi",
		"valenci", "radicalli", "hopefulness", "sensitiviti", "sensibiliti", "triplicate", "formative", "electriciti", "goodness", "replacement", "adoption",
		"probate", "cease", "controll", "roll", "outings", "succeeding", "conformabli", "yay", "ayyied",
	} {
		f.Add(w)
	}
	for w := range stopWords {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, w string) {
		letters := []byte(w)
		for i, c := range letters {
			letters[i] = 'a' + c%26
			if c >= 'a' && c <= 'z' {
				letters[i] = c
			}
		}
		w = string(letters[:min(len(letters), MaxWord)])
		if got, want := stemEnglish(w), snowballEnglish(w); got != want {
			t.Errorf("%q: got %q, want %q", w, got, want)
		}
	})
}

// TestStemEnglishSuffixes joins beginnings of several shapes, all that the
// stemmer takes for suffixes, and up to two letters.
func TestStemEnglishSuffixes(t *testing.T) {
	begins := []string{"", "a", "b", "ab", "ba", "bab", "abab", "babab", "commun", "gener", "arsen", "yay", "xyx", "byb", "bow", "babow", "sk", "oyo", "iay", "bl"}
	suffixes := []string{"", "s", "ies", "ied", "sses", "ss", "us", "ed", "eed", "ing", "edly", "eedly", "ingly", "at", "bl", "iz", "bb", "tt", "ll", "y",
		"anci", "enci", "ogi", "logi", "li", "bli", "abli", "alli", "fulli", "lessli", "ousli", "entli", "aliti", "biliti", "iviti", "tional", "ational",
		"alism", "ation", "ization", "izer", "ator", "iveness", "fulness", "ousness", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "ic", "ance",
		"ence", "able", "ible", "ate", "ive", "ize", "iti", "al", "ism", "ion", "sion", "tion", "er", "ous", "ant", "ent", "ment", "ement", "e", "l"}
	ends := []string{""}
	for c := 'a'; c <= 'z'; c++ {
		ends = append(ends, string(c), "e"+string(c), string(c)+"s")
	}
	for _, begin := range begins {
		for _, one := range suffixes {
			for _, two := range suffixes {
				for _, end := range ends {
					w := begin + one + two + end
					if got, want := stemEnglish(w), snowballEnglish(w); got != want {
						t.Fatalf("%q: got %q, want %q", w, got, want)
					}
				}
			}
		}
	}
}

// TestStemEnglishEndings tries every ending of three letters, and Snowball's
// exceptions.
func TestStemEnglishEndings(t *testing.T) {
	try := func(w string) {
		if got, want := stemEnglish(w), snowballEnglish(w); got != want {
			t.Fatalf("%q: got %q, want %q", w, got, want)
		}
	}
	for _, end := range []string{"", "s", "x"} {
		for _, w := range []string{
			"skis", "skies", "dying", "lying", "tying", "idly", "gently", "ugly", "early", "only", "singly", "sky", "news", "howe", "atlas", "cosmos", "bias",
			"andes", "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed",
		} {
			try(w + end)
		}
	}
	for _, begin := range []string{"", "a", "ab", "bab", "yay", "babab", "commun", "gener", "arsen", "abaliz", "babfuln", "xyzabat", "babal"} {
		for i := range 26 * 26 * 26 {
			try(begin + string([]byte{byte('a' + i/676), byte('a' + i/26%26), byte('a' + i%26)}))
		}
	}
}

func BenchmarkStemEnglish(b *testing.B) {
	words := []string{"running", "table", "conversations", "definitely", "database", "improve", "accuracy", "implementation"}
	for i := 0; b.Loop(); i++ {
		stemEnglish(words[i%len(words)])
	}
}

func BenchmarkStemSnowball(b *testing.B) {
	words := []string{"running", "table", "conversations", "definitely", "database", "improve", "accuracy", "implementation"}
	for i := 0; b.Loop(); i++ {
		snowballEnglish(words[i%len(words)])
	}
}
