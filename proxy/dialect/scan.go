package dialect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// scanner walks one JSON text once, from left to right. What it accepts is
// valid by RFC 8259, except for unchecked strings, and not deeper than
// MaxDepth. It never recurses, allocates only for errors, and decodes nothing.
//
// The first error sticks and ends every walk. A walk over members or elements
// must consume each value, with skip or a nested walk.
type scanner struct {
	b     []byte
	i     int // next byte to read
	depth int // open arrays and objects
	err   error
	// unchecked makes skip look only for the end of string values, with
	// rawStringEnd. Keys are checked regardless.
	unchecked bool
	// spaced is set if the value that skip consumed last has insignificant
	// whitespace inside.
	spaced bool
	// known is a string whose end has been found already; empty = none.
	known span
}

// span is a byte range of the text.
type span struct{ start, end int }

// key is the range of an object's key, without its quotes.
type key struct {
	span
	escaped bool // has escapes, so its bytes differ from its name
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("%w at byte %d", err, s.i)
	}
}

// peek returns the next byte, or 0 at the end: a byte that is valid nowhere
// outside a string.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// space skips insignificant whitespace.
func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

// begin skips to the first value of the text; end checks that nothing follows
// the last one.
func (s *scanner) begin() { s.space() }

func (s *scanner) end() {
	s.space()
	if s.i != len(s.b) {
		s.fail(ErrMalformed)
	}
}

// enter consumes the bracket that opens an array or object.
func (s *scanner) enter(open byte) bool {
	switch {
	case s.err != nil:
		return false
	case s.peek() != open:
		s.fail(ErrMalformed)
		return false
	case s.depth == MaxDepth:
		s.fail(ErrTooDeep)
		return false
	}
	s.i++
	s.depth++
	return true
}

// more consumes what precedes the next member or element, or the closing
// bracket. It reports whether there is a next one.
func (s *scanner) more(closing byte, first bool) bool {
	if s.err != nil {
		return false
	}
	s.space()
	if s.peek() == closing {
		s.i++
		s.depth--
		return false
	}
	if !first {
		if s.peek() != ',' {
			s.fail(ErrMalformed)
			return false
		}
		s.i++
		s.space()
	}
	return true
}

// members is an iterator over the keys of the object that starts here. At each
// key the scanner is at its value. Keys that are not UTF-8 are refused, because
// servers differ in what they make of them.
func (s *scanner) members(yield func(key) bool) {
	if !s.enter('{') {
		return
	}
	for first := true; s.more('}', first); first = false {
		if s.peek() != '"' {
			s.fail(ErrMalformed)
			return
		}
		start := s.i
		end, escaped := stringEnd(s.b, start)
		if end < 0 || !utf8.Valid(s.b[start:end]) {
			s.fail(ErrMalformed)
			return
		}
		s.i = end
		s.space()
		if s.peek() != ':' {
			s.fail(ErrMalformed)
			return
		}
		s.i++
		s.space()
		if !yield(key{span{start + 1, end - 1}, escaped}) {
			return
		}
	}
}

// elements is an iterator over the array that starts here. At each step the
// scanner is at an element.
func (s *scanner) elements(yield func(n int) bool) {
	if !s.enter('[') {
		return
	}
	for n := 0; s.more(']', n == 0); n++ {
		if !yield(n) {
			return
		}
	}
}

// check is skip for a value that is going to be read: all of it is checked.
func (s *scanner) check() span {
	unchecked := s.unchecked
	s.unchecked = false
	v := s.skip()
	s.unchecked = unchecked
	return v
}

// valueEnd returns the index after the string value that starts here; -1 if it
// is malformed.
func (s *scanner) valueEnd() int {
	if s.unchecked {
		if s.known.end > 0 && s.known.start == s.i {
			return s.known.end
		}
		return rawStringEnd(s.b, s.i)
	}
	end, _ := stringEnd(s.b, s.i)
	return end
}

// skip consumes the value that starts here and returns its range, which is
// empty after an error.
func (s *scanner) skip() span {
	v := span{s.i, s.i}
	s.spaced = false
	if s.err != nil {
		return v
	}
	if s.peek() == '"' {
		end := s.valueEnd()
		if end < 0 {
			s.fail(ErrMalformed)
			return v
		}
		s.i = end
	} else {
		s.skipNested()
	}
	if s.err == nil {
		v.end = s.i
	}
	return v
}

// skipNested is skip for all kinds of values. The stack of open brackets is a
// bit set, one bit per level: set for objects.
func (s *scanner) skipNested() {
	var objects [MaxDepth/64 + 1]uint64
	bottom := s.depth
	for {
		// One value, or the start of one.
		opened := false
		switch c := s.peek(); c {
		case '"':
			end := s.valueEnd()
			if end < 0 {
				s.fail(ErrMalformed)
				return
			}
			s.i = end
		case '{', '[':
			if !s.enter(c) {
				return
			}
			opened = true
			word, bit := &objects[s.depth/64], uint64(1)<<(s.depth%64)
			*word &^= bit
			if c == '{' {
				*word |= bit
			}
		default:
			end := literalEnd(s.b, s.i)
			if end < 0 {
				s.fail(ErrMalformed)
				return
			}
			s.i = end
		}
		// Close what ends here, up to the comma or bracket before the next
		// value.
		for {
			if s.depth == bottom {
				return
			}
			s.noteSpace()
			object := objects[s.depth/64]&(1<<(s.depth%64)) != 0
			closing := byte(']')
			if object {
				closing = '}'
			}
			if s.peek() == closing {
				s.i++
				s.depth--
				opened = false
				continue
			}
			if !opened {
				if s.peek() != ',' {
					s.fail(ErrMalformed)
					return
				}
				s.i++
				s.noteSpace()
			}
			if object {
				if !s.skipKey() {
					return
				}
			}
			break
		}
	}
}

// skipKey consumes a key with its colon.
func (s *scanner) skipKey() bool {
	if s.peek() == '"' {
		if end, _ := stringEnd(s.b, s.i); end >= 0 {
			s.i = end
			s.noteSpace()
			if s.peek() == ':' {
				s.i++
				s.noteSpace()
				return true
			}
		}
	}
	s.fail(ErrMalformed)
	return false
}

// noteSpace is space inside a value that is being skipped.
func (s *scanner) noteSpace() {
	if s.i < len(s.b) && s.b[s.i] <= ' ' {
		start := s.i
		s.space()
		s.spaced = s.spaced || s.i > start
	}
}

// Words of eight equal bytes, to examine eight bytes at once.
const (
	ones       = 0x0101010101010101
	highs      = 0x80 * ones
	quoteFlip  = 0x02 * ones // turns '"' (0x22) into 0x20 and keeps the control characters below it
	belowQuote = 0x21 * ones
	backslash  = '\\' * ones
)

// special marks, in the high bits of its bytes, the quotes, backslashes and
// control characters in x. Only the lowest mark is exact: a borrow may run on
// above it.
func special(x uint64) uint64 {
	return (((x ^ quoteFlip) - belowQuote) | ((x ^ backslash) - ones)) &^ x & highs
}

// nextSpecial returns the index of the next quote, backslash or control
// character from i on; len(b) if there is none. It leaves at the first word
// that has one: text has so many escapes that testing more words per branch is
// slower overall.
func nextSpecial(b []byte, i int) int {
	for i+32 <= len(b) {
		w := b[i : i+32 : i+32]
		if m := special(binary.LittleEndian.Uint64(w)); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		if m := special(binary.LittleEndian.Uint64(w[8:])); m != 0 {
			return i + 8 + bits.TrailingZeros64(m)/8
		}
		if m := special(binary.LittleEndian.Uint64(w[16:])); m != 0 {
			return i + 16 + bits.TrailingZeros64(m)/8
		}
		if m := special(binary.LittleEndian.Uint64(w[24:])); m != 0 {
			return i + 24 + bits.TrailingZeros64(m)/8
		}
		i += 32
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// stringEnd returns the index after the closing quote of the string that opens
// at b[i], and whether it has escapes; -1 if it is malformed.
func stringEnd(b []byte, i int) (end int, escaped bool) {
	for i = nextSpecial(b, i+1); i+1 < len(b) && b[i] == '\\'; i = nextSpecial(b, i) {
		escaped = true
		switch n := int(escapeLen[b[i+1]]); n {
		case 2:
			i += 2
		case 6:
			if _, ok := hex4(b[i+2:]); !ok {
				return -1, true
			}
			i += 6
		default:
			return -1, true
		}
	}
	if i < len(b) && b[i] == '"' {
		return i + 1, escaped
	}
	return -1, escaped
}

// escapeLen is the length of the escape whose second byte is the index; 0 if
// there is no such escape.
var escapeLen = [256]uint8{'"': 2, '\\': 2, '/': 2, 'b': 2, 'f': 2, 'n': 2, 'r': 2, 't': 2, 'u': 6}

// literalEnd returns the index after the number, true, false or null at b[i];
// -1 if there is none. The caller checks what follows.
func literalEnd(b []byte, i int) int {
	rest := b[i:]
	for _, word := range [...]string{"true", "false", "null"} {
		if len(rest) >= len(word) && string(rest[:len(word)]) == word {
			return i + len(word)
		}
	}
	return numberEnd(b, i)
}

func numberEnd(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := i
	if i = digitsEnd(b, i); i == whole || b[whole] == '0' && i > whole+1 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		fraction := i + 1
		if i = digitsEnd(b, fraction); i == fraction {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := i
		if i = digitsEnd(b, exponent); i == exponent {
			return -1
		}
	}
	return i
}

func digitsEnd(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// rawStringEnd returns the index after the closing quote of the string that
// opens at b[i]: the first quote after an even number of backslashes; -1 if
// there is none. It looks at nothing else. On valid JSON it equals stringEnd; a
// string with malformed escapes or bare control characters ends where a lenient
// decoder ends it.
//
// Most of a body is text that is not read, so this decides how fast a body is
// parsed. Backslashes are counted once for each quote, so time is linear.
func rawStringEnd(b []byte, i int) int {
	for i++; ; i++ {
		if i = nextQuote(b, i); i < 0 {
			return -1
		}
		first := i
		for b[first-1] == '\\' { // the string's opening quote ends this
			first--
		}
		if (i-first)%2 == 0 {
			return i + 1
		}
	}
}

// nextQuote returns the index of the first quote from i on, -1 if there is
// none. In prose one byte in a hundred is a quote, and bytes.IndexByte is many
// times faster than a loop. In the JSON of a tool call's arguments it is one in
// five, and the call would be slower, so the first 32 bytes are examined here.
func nextQuote(b []byte, i int) int {
	for n := 0; n < 4 && i+8 <= len(b); n, i = n+1, i+8 {
		x := binary.LittleEndian.Uint64(b[i:]) ^ '"'*ones
		if m := (x - ones) &^ x & highs; m != 0 {
			return i + bits.TrailingZeros64(m)/8 // only the lowest mark is exact: a borrow may run on above it
		}
	}
	if i >= len(b) {
		return -1
	}
	n := bytes.IndexByte(b[i:], '"')
	if n < 0 {
		return -1
	}
	return i + n
}
