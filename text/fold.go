package text

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

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
