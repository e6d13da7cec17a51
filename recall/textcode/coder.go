// Package textcode compresses short texts one by one, so that each can be decoded
// without the others. A Coder learns a table of symbols from samples; encoding
// and decoding are then pure and safe for concurrent use. Package recall keeps the
// texts of its indexes in this form, at 0.35 to 0.4 of their size.
package textcode

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// Coder compresses texts with a table of symbols, each of up to eight bytes,
// which it learns from the first texts of an index. Unlike block compression it
// decodes any text without its neighbours, at about a nanosecond per symbol.
// The idea is FSST's (Boncz, Neumann and Leis, Fast Random Access String
// Compression, 2020). The symbols here are words of a language, so there are
// more of them, and the rarer ones take two bytes.
//
// A code below wideCodes is a symbol. From there up to literal it is the first
// of two bytes. literal precedes a byte that is not a symbol.
type Coder struct {
	Symbols []uint64 // their bytes, the first one lowest
	Lengths []uint8
	slots   []uint16 // hash table of the symbols of up to three bytes: number + 1
	long    []uint16 // numbers of the others, by the hash of their first four bytes, longest first
	ends    []uint16 // where the numbers of a hash end in long
}

const (
	wideCodes  = 192
	literal    = 255
	MaxSymbol  = 8
	MaxSymbols = 4096 // at most wideCodes + 256 * (literal - wideCodes)
	headBits   = 12
	headBytes  = 4

	// perSymbol is how many bytes of text justify one more symbol.
	perSymbol = 48
)

// Learn returns a coder for texts like these.
func Learn(texts [][]byte) *Coder {
	total := 0
	words := newWordCounts()
	for _, t := range texts {
		total += len(t)
		for i := 0; i < len(t); {
			n := wordLength(t[i:])
			if n > 1 {
				words.add(symbolOf(t[i : i+n]))
			}
			i += n
		}
	}
	type candidate struct {
		symbol uint64
		length int
		count  uint32
		gain   int
	}
	var all []candidate
	for i, count := range words.counts {
		s := words.words[i]
		n := symbolLength(s)
		if gain := int(count) * (n - 2); count >= 2 && gain >= 4 {
			all = append(all, candidate{s, n, count, gain})
		}
	}
	order := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.symbol, b.symbol))
	}
	slices.SortFunc(all, order)
	all = all[:min(len(all), min(MaxSymbols, max(total/perSymbol, wideCodes))-wideCodes)]
	// What is not part of a learnt word is written by letters or pairs of
	// letters.
	known := &Coder{}
	for _, c := range all {
		known.add(c.symbol, c.length)
	}
	known.Index()
	seen := new(SeenWords)
	var ones [256]uint32
	pairs := make([]uint32, 1<<16)
	for _, t := range texts {
		before := -1
		for i := 0; i < len(t); {
			n := 0
			if len(t)-i < MaxSymbol {
				_, n = known.longest(t[i:])
			} else if w := seen.of(known, binary.LittleEndian.Uint64(t[i:])); !w.literal() {
				n = int(w.length)
			}
			if n > 0 {
				i += n
				before = -1
				continue
			}
			ones[t[i]]++
			if before >= 0 {
				pairs[before<<8|int(t[i])]++
				before = -1 // the pair ends here
			} else {
				before = int(t[i])
			}
			i++
		}
	}
	for i := range all {
		all[i].gain = int(all[i].count)
	}
	for b, count := range ones {
		if count > 2 && b != 0 {
			all = append(all, candidate{uint64(b), 1, count, int(count)})
		}
	}
	for p, count := range pairs { // none that ends in a blank, which belongs to the next word
		if count > 4 && p>>8 != 0 && p&255 != 0 && p&255 != ' ' {
			all = append(all, candidate{uint64(p>>8) | uint64(p&255)<<8, 2, count, int(count)})
		}
	}
	slices.SortFunc(all, order)
	c := &Coder{}
	for i, s := range all {
		if i < wideCodes || s.length > 2 { // two bytes for a pair would save nothing
			c.add(s.symbol, s.length)
		}
	}
	c.Symbols, c.Lengths = slices.Clip(c.Symbols), slices.Clip(c.Lengths)
	c.Index()
	return c
}

// wordLength returns how many bytes at the start of t form a word when symbols
// are learnt: a blank and the letters, or the other characters, after it. A
// zero is a word of its own, because no symbol contains one.
func wordLength(t []byte) int {
	if t[0] == 0 {
		return 1
	}
	letters := letter(t[0])
	if t[0] == ' ' && len(t) > 1 {
		letters = letter(t[1])
	}
	n := 1
	for n < len(t) && n < MaxSymbol && t[n] != 0 && letter(t[n]) == letters && !(t[n] == ' ' && n+1 < len(t) && letter(t[n+1])) {
		n++
	}
	return n
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }

func symbolOf(b []byte) uint64 {
	var s uint64
	for i, c := range b {
		s |= uint64(c) << (8 * i)
	}
	return s
}

// symbolLength returns the length of a symbol, which has no zero bytes.
func symbolLength(s uint64) int { return (bits.Len64(s) + 7) / 8 }

func (c *Coder) add(symbol uint64, length int) {
	c.Symbols = append(c.Symbols, symbol)
	c.Lengths = append(c.Lengths, uint8(length))
}

// Index builds the tables that encoding needs from Symbols and Lengths.
func (c *Coder) Index() {
	short := 0
	c.ends = make([]uint16, 1<<headBits+1)
	for n, s := range c.Symbols {
		if c.Lengths[n] < headBytes {
			short++
		} else {
			c.ends[headHash(s)+1]++
		}
	}
	for h := range c.ends[1:] {
		c.ends[h+1] += c.ends[h]
	}
	// Until the numbers are filled in, ends has where those of a hash begin.
	c.long = make([]uint16, len(c.Symbols)-short)
	for length := uint8(MaxSymbol); length >= headBytes; length-- {
		for n, s := range c.Symbols {
			if c.Lengths[n] == length {
				at := &c.ends[headHash(s)]
				c.long[*at] = uint16(n)
				*at++
			}
		}
	}
	size := 16
	for size < 3*short {
		size *= 2
	}
	c.slots = make([]uint16, size)
	for n, s := range c.Symbols {
		if c.Lengths[n] >= headBytes {
			continue
		}
		i := c.slot(s)
		for c.slots[i] != 0 {
			i = (i + 1) & (size - 1)
		}
		c.slots[i] = uint16(n + 1)
	}
}

func (c *Coder) slot(s uint64) int {
	return int(s*0x9e3779b97f4a7c15>>32) & (len(c.slots) - 1)
}

func headHash(s uint64) int { return int(uint32(s) * 0x9e3779b1 >> (32 - headBits)) }

// longest returns the longest symbol at the start of t and its length, or 0.
func (c *Coder) longest(t []byte) (symbol, length int) {
	if len(t) >= MaxSymbol {
		return c.longestOf(binary.LittleEndian.Uint64(t), MaxSymbol)
	}
	return c.longestOf(symbolOf(t), len(t))
}

// longestOf is longest for the left lowest bytes of head, whose other bytes are
// 0.
func (c *Coder) longestOf(head uint64, left int) (symbol, length int) {
	h, from := headHash(head), uint16(0)
	if h > 0 {
		from = c.ends[h-1]
	}
	for _, k := range c.long[from:c.ends[h]] {
		n := int(c.Lengths[k])
		if (head^c.Symbols[k])<<(64-8*n) == 0 && n <= left {
			return int(k), n
		}
	}
	for n := min(left, headBytes-1); n > 0; n-- {
		s := head << (64 - 8*n) >> (64 - 8*n)
		for i := c.slot(s); c.slots[i] != 0; i = (i + 1) & (len(c.slots) - 1) {
			if k := int(c.slots[i]) - 1; c.Symbols[k] == s && int(c.Lengths[k]) == n {
				return k, n
			}
		}
	}
	return 0, 0
}

// Encode appends the codes of text.
func (c *Coder) Encode(dst, text []byte) []byte {
	for len(text) > 0 {
		k, n := c.longest(text)
		switch {
		case n == 0:
			dst = append(dst, literal, text[0])
			n = 1
		case k < wideCodes:
			dst = append(dst, byte(k))
		default:
			k -= wideCodes
			dst = append(dst, byte(wideCodes+k>>8), byte(k))
		}
		text = text[n:]
	}
	return dst
}

// Decode appends the text of codes. It is not ok if Encode did not write them.
func (c *Coder) Decode(dst, codes []byte) (text []byte, ok bool) {
	symbols := c.Symbols
	lengths := c.Lengths[:len(symbols)]
	for i := 0; i < len(codes); {
		// Grow for some codes at a time, because a check for each would cost as
		// much as the rest.
		const some = 256
		stop := min(i+some, len(codes)-1) // the last byte has no successor
		n := len(dst)
		dst = slices.Grow(dst, (some+1)*MaxSymbol)
		space := dst[:cap(dst)]
		for i < stop {
			k := uint(codes[i])
			if k == literal {
				space[n] = codes[i+1]
				n++
				i += 2
				continue
			}
			// Which codes take two bytes is unpredictable, so this does not
			// branch on it.
			wide := (k + 256 - wideCodes) >> 8
			k += ((k-wideCodes)*255 + uint(codes[i+1])) & -wide
			i += 1 + int(wide)
			if k >= uint(len(symbols)) {
				return dst[:n], false
			}
			binary.LittleEndian.PutUint64(space[n:], symbols[k])
			n += int(lengths[k])
		}
		if i == len(codes)-1 {
			k := int(codes[i])
			i++
			if k >= wideCodes || k >= len(symbols) {
				return dst[:n], false
			}
			binary.LittleEndian.PutUint64(space[n:], symbols[k])
			n += int(lengths[k])
		}
		dst = dst[:n]
	}
	return dst, true
}

// Held returns the heap that c uses, in bytes.
func (c *Coder) Held() int64 {
	if c == nil {
		return 0
	}
	return int64(cap(c.Symbols)*9 + 2*(len(c.slots)+len(c.long)+len(c.ends)))
}

// SeenWords caches the codes of the starts of words while one coder codes many
// texts, since most words repeat. The result is the coder's: after its first
// byte, a symbol has either only letters or none.
type SeenWords [1 << seenBits]seenWord

type seenWord struct {
	word   uint64
	code   uint16 // the first byte is lowest
	size   uint8  // length of the code in bytes; 0 = empty slot
	length uint8  // length of what it encodes
}

const seenBits = 13

// of returns the entry for the start of eight bytes, the first of which is
// lowest. c must always be the same coder.
func (m *SeenWords) of(c *Coder, head uint64) *seenWord {
	word, n := firstWord(head)
	e := &m[word*0x9e3779b97f4a7c15>>(64-seenBits)]
	if e.word != word || e.size == 0 {
		*e = newSeenWord(c, word, n)
	}
	return e
}

func newSeenWord(c *Coder, word uint64, length int) seenWord {
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

// literal reports whether the first byte starts no symbol.
func (w *seenWord) literal() bool { return byte(w.code) == literal }

// firstWord cuts eight bytes after the run of letters, or of other characters,
// that follows the first byte. It returns what is left and its length.
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

// Encode is Coder.Encode for c, which must always be the same.
func (m *SeenWords) Encode(c *Coder, dst, text []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, 2*len(text))
	space := dst[:cap(dst)]
	for len(text) >= MaxSymbol {
		w := m.of(c, binary.LittleEndian.Uint64(text))
		binary.LittleEndian.PutUint16(space[n:], w.code)
		n += int(w.size)
		text = text[w.length:]
	}
	return c.Encode(space[:n], text)
}

// wordCounts counts words, each in the lowest bytes of a number other than 0.
// It is several times as fast as a map.
type wordCounts struct {
	words  []uint64 // 0 = empty
	counts []uint32
	used   int
}

func newWordCounts() *wordCounts {
	return &wordCounts{words: make([]uint64, 4*MaxSymbols), counts: make([]uint32, 4*MaxSymbols)}
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

// slot returns the position of a word, or the empty one where it would go.
func (c *wordCounts) slot(word uint64) int {
	mask := len(c.words) - 1
	i := int(word*0x9e3779b97f4a7c15>>32) & mask
	for c.words[i] != 0 && c.words[i] != word {
		i = (i + 1) & mask
	}
	return i
}
