package recall

import (
	"bytes"
	"math/bits"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// sight is where a word of the query stands in a text.
type sight struct {
	from, to int32
	concept  uint8
}

// sights returns where words of the query stand in a text, whose terms are packed: words that begin like a stem which both have. Not
// found are irregular forms.
func (s *selection) sights(packed, text []byte) []sight {
	var stems [maxStems][]byte
	var concepts [maxStems]uint8
	var by [256]uint32 // stems by their first character
	opens := wide      // the bytes that such a character may begin with
	n := 0
	for at := 0; at < len(packed) && n < maxStems; {
		var id uint32
		if id, at = nextTerm(packed, at); !s.q.may(id) {
			continue
		}
		k := s.q.conceptOf(id)
		if k < 0 {
			continue
		}
		stem := s.ix.terms.raw(id)
		if len(stem) == 0 {
			continue
		}
		if c := stem[len(stem)-1]; len(stem) > 3 && (c == 'i' || c == 'e') { // "stori" of "story", "use" of "using"
			stem = stem[:len(stem)-1]
		}
		known := false
		for _, before := range stems[:n] {
			known = known || bytes.Equal(before, stem)
		}
		if !known {
			stems[n], concepts[n] = stem, uint8(k)
			r, _ := folded(stem)
			by[byte(r)] |= 1 << n
			if r < utf8.RuneSelf {
				opens[r], opens[upper(byte(r))] = 1, 1
			}
			n++
		}
	}
	seen := s.scratch.sights[:0]
	for at := 0; at < len(text) && len(seen) < maxSights; at++ {
		if opens[text[at]] == 0 {
			continue
		}
		r, size := folded(text[at:])
		if !beginsWord(text, at, r) {
			continue
		}
		for left := by[byte(r)]; left != 0; left &= left - 1 {
			i := bits.TrailingZeros32(left)
			n := hasStem(text[at:], stems[i])
			if n < 0 {
				continue
			}
			next, end := at+size, at+n
			if !spaceless(r) { // words of these need no blank between them
				next = wordEnd(text, next)
			}
			if next <= end+maxEnding {
				end = max(next, end)
			}
			seen = append(seen, sight{int32(at), int32(end), concepts[i]})
			break
		}
	}
	s.scratch.sights = seen
	return seen
}

// conceptOf returns the term of the query that a word stands for, -1 if for none.
func (q *query) conceptOf(id uint32) int {
	for k := range q.terms {
		for _, w := range q.terms[k].words {
			if w.id == id {
				return k
			}
		}
	}
	return -1
}

// wordBytes are the ASCII bytes of words in lower case, 0 for others.
var wordBytes = func() (all [256]byte) {
	for i := range utf8.RuneSelf {
		if c := byte(i); letter(c) || isDigit(c) {
			all[i] = lower(c)
		}
	}
	return all
}()

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		c &^= 0x20
	}
	return c
}

// wide are the bytes that characters outside ASCII begin with.
var wide = func() (all [256]byte) {
	for i := utf8.RuneSelf; i < len(all); i++ {
		if utf8.RuneStart(byte(i)) {
			all[i] = 1
		}
	}
	return all
}()

// beginsWord reports whether a word begins with the character r at byte i.
func beginsWord(text []byte, i int, r rune) bool {
	if r >= utf8.RuneSelf {
		if !wordly(r) {
			return false
		}
		if spaceless(r) {
			return true
		}
	}
	if i == 0 {
		return true
	}
	if before := text[i-1]; before < utf8.RuneSelf {
		return wordBytes[before] == 0
	}
	before, _ := utf8.DecodeLastRune(text[:i])
	return !wordly(before) || spaceless(before)
}

// wordly reports whether a character is of a word.
func wordly(r rune) bool {
	if r < utf8.RuneSelf {
		return wordBytes[r] != 0
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// wordEnd is where a word goes on to that byte i may be of.
func wordEnd(text []byte, i int) int {
	for i < len(text) {
		if wordBytes[text[i]] != 0 {
			i++
			continue
		}
		if text[i] < utf8.RuneSelf {
			break
		}
		r, size := utf8.DecodeRune(text[i:])
		if !wordly(r) || spaceless(r) {
			break
		}
		i += size
	}
	return i
}

// folded is the first character of a text in lower case, without accents: stemmers take these away.
func folded(text []byte) (r rune, size int) {
	if c := text[0]; c < utf8.RuneSelf {
		return rune(lower(c)), 1
	}
	r, size = utf8.DecodeRune(text)
	if base := norm.NFD.Properties(text[:size]).Decomposition(); len(base) > 0 {
		r, _ = utf8.DecodeRune(base)
	}
	return unicode.ToLower(r), size
}

// hasStem returns how long that is which a text begins with like a stem, -1 if it does not. Accents that stand alone say nothing.
func hasStem(text, stem []byte) int {
	i := 0
	for j := 0; j < len(stem); {
		if i == len(text) {
			return -1
		}
		if c := text[i]; c < utf8.RuneSelf && stem[j] < utf8.RuneSelf {
			if lower(c) != stem[j] {
				return -1
			}
			i, j = accentsEnd(text, i+1), accentsEnd(stem, j+1)
			continue
		}
		a, n := folded(text[i:])
		b, m := folded(stem[j:])
		if a != b {
			return -1
		}
		i, j = accentsEnd(text, i+n), accentsEnd(stem, j+m)
	}
	return i
}

func accentsEnd(text []byte, i int) int {
	for i < len(text) && text[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(text[i:])
		if !unicode.Is(unicode.Mn, r) {
			break
		}
		i += size
	}
	return i
}
