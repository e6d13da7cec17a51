package recall

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// seenWords remembers with which symbol words begin, while many texts are coded with one coder: most words have come before, and a
// look at one that has takes a third of the search. It gives the same codes, as no symbol of more than two bytes has any but letters
// behind its first.
type seenWords [1 << seenBits]struct {
	word   uint64
	symbol uint16
	length uint8 // and 1; 0 = nothing is here
}

const seenBits = 12

// longest is coder.longest of c, always the same one.
func (m *seenWords) longest(c *coder, t []byte) (symbol, length int) {
	if len(t) < maxSymbol {
		return c.longest(t)
	}
	head := binary.LittleEndian.Uint64(t)
	word, n := firstWord(head)
	e := &m[word*0x9e3779b97f4a7c15>>(64-seenBits)]
	if e.word == word && e.length > 0 {
		return int(e.symbol), int(e.length) - 1
	}
	symbol, length = c.longestOf(word, n)
	e.word, e.symbol, e.length = word, uint16(symbol), uint8(length+1)
	return symbol, length
}

// firstWord cuts eight bytes, the first lowest, behind the letters that follow the first of them, but leaves at least two; and
// returns how many are left.
func firstWord(head uint64) (word uint64, length int) {
	const (
		each = 0x0101010101010101
		high = each << 7
		low7 = high - each
	)
	lower := head&low7 | 0x20*each
	letters := (lower + (0x80-'a')*each) &^ (lower + (0x7f-'z')*each) & high
	others := ^(letters | head) & high &^ 0xff
	if others == 0 {
		return head, maxSymbol
	}
	length = max(bits.TrailingZeros64(others)/8, 2)
	return head & (1<<(8*length) - 1), length
}

// encode is coder.encode of c, always the same one.
func (m *seenWords) encode(c *coder, dst, text []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, 2*len(text))
	space := dst[:cap(dst)]
	for len(text) > 0 {
		k, length := m.longest(c, text)
		switch {
		case length == 0:
			space[n], space[n+1] = literal, text[0]
			n += 2
			length = 1
		case k < wideCodes:
			space[n] = byte(k)
			n++
		default:
			k -= wideCodes
			space[n], space[n+1] = byte(wideCodes+k>>8), byte(k)
			n += 2
		}
		text = text[length:]
	}
	return space[:n]
}
