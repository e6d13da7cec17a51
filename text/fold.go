package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// AppendFolded appends a text in lower case, without the accents of European
// languages (é is e, ß is ss) and with plain apostrophes. People leave accents
// out, so words are compared folded.
func AppendFolded(b []byte, s string) []byte {
	for _, r := range s {
		if r < utf8.RuneSelf {
			b = append(b, lower(byte(r)))
			continue
		}
		r = unicode.ToLower(r)
		switch {
		case int(r) < len(baseLetters) && baseLetters[r] != "":
			b = append(b, baseLetters[r]...)
		case r == '’':
			b = append(b, '\'')
		case !unicode.Is(unicode.Mn, r):
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// unaccented returns a lower-case text without the accents of European
// languages.
func unaccented(s string) string {
	if IsASCII(s) {
		return s
	}
	return accents.Replace(s)
}

var accents = strings.NewReplacer(accented[:]...)

// baseLetters holds what the letters of accented are without their accents.
var baseLetters = func() (letters [0x250]string) {
	for i := 0; i < len(accented); i += 2 {
		r, _ := utf8.DecodeRuneInString(accented[i])
		letters[r] = accented[i+1]
	}
	return letters
}()

// accented pairs letters with what they are without accents.
var accented = [...]string{
	"à", "a", "á", "a", "â", "a", "ã", "a", "ä", "a", "å", "a", "ă", "a", "ç", "c", "è", "e", "é", "e", "ê", "e", "ë", "e",
	"ì", "i", "í", "i", "î", "i", "ï", "i", "ı", "i", "ñ", "n", "ò", "o", "ó", "o", "ô", "o", "õ", "o", "ö", "o", "ő", "o", "ø", "o",
	"ù", "u", "ú", "u", "û", "u", "ü", "u", "ű", "u", "ý", "y", "ÿ", "y", "ß", "ss", "æ", "ae", "œ", "oe", "ş", "s", "ș", "s", "ţ", "t", "ț", "t", "ğ", "g",
}

// FoldRune returns the first character of a text that is not empty, in lower
// case and without accents, as stemmers leave it, and its length in the text.
func FoldRune(text []byte) (r rune, size int) {
	if c := text[0]; c < utf8.RuneSelf {
		return rune(lower(c)), 1
	}
	r, size = utf8.DecodeRune(text)
	if base := norm.NFD.Properties(text[:size]).Decomposition(); len(base) > 0 {
		r, _ = utf8.DecodeRune(base)
	}
	return unicode.ToLower(r), size
}

// StemPrefix returns the length of the prefix of a text that equals a stem once
// both are folded, or -1 if there is none.
func StemPrefix(text, stem []byte) int {
	i := 0
	for j := 0; j < len(stem); {
		if i == len(text) {
			return -1
		}
		if c := text[i]; c < utf8.RuneSelf && stem[j] < utf8.RuneSelf {
			if lower(c) != stem[j] {
				return -1
			}
			i, j = skipAccents(text, i+1), skipAccents(stem, j+1)
			continue
		}
		a, n := FoldRune(text[i:])
		b, m := FoldRune(stem[j:])
		if a != b {
			return -1
		}
		i, j = skipAccents(text, i+n), skipAccents(stem, j+m)
	}
	return i
}

// skipAccents returns the end of the combining marks that begin at byte i.
func skipAccents(text []byte, i int) int {
	for i < len(text) && text[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(text[i:])
		if !unicode.Is(unicode.Mn, r) {
			break
		}
		i += size
	}
	return i
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}
