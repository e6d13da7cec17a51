package recall

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// seenWords remembers the codes that words begin with, while many texts are coded with one coder: most words have come before.
// What it gives is what the coder gives, as behind its first byte a symbol has either letters or none.
type seenWords [1 << seenBits]seenWord

type seenWord struct {
	word   uint64
	code   uint16 // the first byte lowest
	size   uint8  // of the code in bytes; 0 = no word is here
	length uint8  // of what it stands for
}

const seenBits = 13

// of returns what stands for the start of eight bytes, the first lowest; c is always the same coder.
func (m *seenWords) of(c *coder, head uint64) *seenWord {
	word, n := firstWord(head)
	e := &m[word*0x9e3779b97f4a7c15>>(64-seenBits)]
	if e.word != word || e.size == 0 {
		*e = newSeenWord(c, word, n)
	}
	return e
}

func newSeenWord(c *coder, word uint64, length int) seenWord {
	k, n := c.longestOf(word, length)
	switch {
	case n == 0:
		return seenWord{word, literal | uint16(word)<<8, 2, 1}
	case k < wideCodes:
		return seenWord{word, uint16(k), 1, uint8(n)}
	}
	k -= wideCodes
	return seenWord{word, uint16(wideCodes+k>>8) | uint16(k)<<8, 2, uint8(n)}
}

// literal reports whether the first byte is no symbol, nor begins one.
func (w *seenWord) literal() bool { return byte(w.code) == literal }

// firstWord cuts eight bytes, the first lowest, behind the letters that follow the first of them, or the characters that are none;
// and returns how many are left.
func firstWord(head uint64) (word uint64, length int) {
	const (
		each = 0x0101010101010101
		high = each << 7
		low7 = high - each
	)
	lower := head&low7 | 0x20*each
	letters := (lower + (0x80-'a')*each) &^ (lower + (0x7f-'z')*each) & high
	others := ^(letters | head) & high
	if others&0x8000 != 0 {
		others ^= high
	}
	length = bits.TrailingZeros64(others&^0xff) / 8
	return head & (1<<(8*length) - 1), length
}

// encode is coder.encode of c, always the same one.
func (m *seenWords) encode(c *coder, dst, text []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, 2*len(text))
	space := dst[:cap(dst)]
	for len(text) >= maxSymbol {
		w := m.of(c, binary.LittleEndian.Uint64(text))
		binary.LittleEndian.PutUint16(space[n:], w.code)
		n += int(w.size)
		text = text[w.length:]
	}
	return c.encode(space[:n], text)
}

// wordCounts counts words, each in the lowest bytes of a number that is not 0. It is a map, some times as fast.
type wordCounts struct {
	words  []uint64 // 0 where none is
	counts []uint32
	used   int
}

func newWordCounts() *wordCounts {
	return &wordCounts{words: make([]uint64, 4*maxSymbols), counts: make([]uint32, 4*maxSymbols)}
}

func (c *wordCounts) add(word uint64) {
	i := c.slot(word)
	c.counts[i]++
	if c.words[i] != 0 {
		return
	}
	c.words[i] = word
	if c.used++; 2*c.used < len(c.words) {
		return
	}
	old := *c
	c.words, c.counts = make([]uint64, 2*len(old.words)), make([]uint32, 2*len(old.words))
	for k, w := range old.words {
		if w != 0 {
			at := c.slot(w)
			c.words[at], c.counts[at] = w, old.counts[k]
		}
	}
}

// slot is where a word stands, or would.
func (c *wordCounts) slot(word uint64) int {
	mask := len(c.words) - 1
	i := int(word*0x9e3779b97f4a7c15>>32) & mask
	for c.words[i] != 0 && c.words[i] != word {
		i = (i + 1) & mask
	}
	return i
}
