package recall

import (
	"bytes"
	"math/bits"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// sight is where a word of the query stands in a text.
type sight struct {
	from, to int32
	concept  uint8
}

// sights returns where words of the query stand in a text, whose terms are packed: words that begin like a stem which both have. Not
// found are irregular forms.
func (s *selection) sights(packed, said []byte) []sight {
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
			r, _ := text.FoldRune(stem)
			by[byte(r)] |= 1 << n
			if r < utf8.RuneSelf {
				opens[r], opens[upper(byte(r))] = 1, 1
			}
			n++
		}
	}
	seen := s.scratch.sights[:0]
	for at := 0; at < len(said) && len(seen) < maxSights; at++ {
		if opens[said[at]] == 0 {
			continue
		}
		r, size := text.FoldRune(said[at:])
		if !beginsWord(said, at, r) {
			continue
		}
		for left := by[byte(r)]; left != 0; left &= left - 1 {
			i := bits.TrailingZeros32(left)
			n := text.StemPrefix(said[at:], stems[i])
			if n < 0 {
				continue
			}
			next, end := at+size, at+n
			if !text.Spaceless(r) { // words of these need no blank between them
				next = wordEnd(said, next)
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
func (q *resolvedQuery) conceptOf(id uint32) int {
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
		if c := byte(i); letter(c) || query.IsDigit(c) {
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
func beginsWord(said []byte, i int, r rune) bool {
	if r >= utf8.RuneSelf {
		if !wordly(r) {
			return false
		}
		if text.Spaceless(r) {
			return true
		}
	}
	if i == 0 {
		return true
	}
	if before := said[i-1]; before < utf8.RuneSelf {
		return wordBytes[before] == 0
	}
	before, _ := utf8.DecodeLastRune(said[:i])
	return !wordly(before) || text.Spaceless(before)
}

// wordly reports whether a character is of a word.
func wordly(r rune) bool {
	if r < utf8.RuneSelf {
		return wordBytes[r] != 0
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// wordEnd is where a word goes on to that byte i may be of.
func wordEnd(said []byte, i int) int {
	for i < len(said) {
		if wordBytes[said[i]] != 0 {
			i++
			continue
		}
		if said[i] < utf8.RuneSelf {
			break
		}
		r, size := utf8.DecodeRune(said[i:])
		if !wordly(r) || text.Spaceless(r) {
			break
		}
		i += size
	}
	return i
}
