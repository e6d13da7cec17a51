package dialect

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// skimEnd returns the index after the closing quote of the string that opens at b[i], the first that an even number of
// backslashes stands before; -1 where there is none. What stands in between is not looked at: on valid JSON it is
// stringEnd, and a string with broken escapes or bare control characters ends where a decoder that bears them ends it.
//
// Most of a body is text that nobody here has to understand, so this decides how fast a body is read. Nearly all quotes
// inside of a string stand behind a single backslash; farQuote leaves them out, where there is one for the processor.
//
// The backslashes before a quote are counted for that quote alone, so the time is linear whatever the string holds.
func skimEnd(b []byte, i int) int { return skim(b, i, lookFar(), lookWide()) }

// skim is skimEnd. far and wide say what may be asked of the processor.
func skim(b []byte, i int, far, wide bool) int {
	if i++; i >= len(b) {
		return -1
	}
	if b[i] == '"' {
		return i + 1
	}
	for i++; ; i++ { // two bytes from the start on, so that farQuote may look back; a quote here is an escaped one or the end
		if far {
			i = farQuote(b, i, wide)
		}
		if i = nextQuote(b, i); i < 0 {
			return -1
		}
		first := i
		for b[first-1] == '\\' { // the string's first quote ends this
			first--
		}
		if (i-first)%2 == 0 {
			return i + 1
		}
	}
}

// nextQuote is the index of the first quote from i on; -1 where there is none. Prose has one in a hundred bytes or more,
// over which bytes.IndexByte is many times faster than a loop; the JSON inside of a tool call's arguments has one in five,
// for which calling it is slower than one, so 32 bytes are looked at before.
func nextQuote(b []byte, i int) int {
	if i+32 <= len(b) {
		w := b[i : i+32 : i+32]
		if m := quotes(binary.LittleEndian.Uint64(w)); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		if m := quotes(binary.LittleEndian.Uint64(w[8:])); m != 0 {
			return i + 8 + bits.TrailingZeros64(m)/8
		}
		if m := quotes(binary.LittleEndian.Uint64(w[16:])); m != 0 {
			return i + 16 + bits.TrailingZeros64(m)/8
		}
		if m := quotes(binary.LittleEndian.Uint64(w[24:])); m != 0 {
			return i + 24 + bits.TrailingZeros64(m)/8
		}
		i += 32
	}
	n := bytes.IndexByte(b[i:], '"')
	if n < 0 {
		return -1
	}
	return i + n
}

// quotes marks, in the high bits of its bytes, the quotes in x. Only the lowest mark is exact, as a borrow may run on
// above it.
func quotes(x uint64) uint64 {
	x ^= '"' * ones
	return (x - ones) &^ x & highs
}
