// Package textcode compresses short texts one by one, so that each can be
// decoded without the others. A Coder learns a table of symbols from samples;
// encoding and decoding are then pure and safe for concurrent use. Package
// recall keeps the texts of its indexes in this form, at 0.35 to 0.4 of their
// size.
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
	symbols []uint64 // their bytes, the first one lowest
	lengths []uint8
	slots   []uint16 // hash table of the symbols of up to three bytes: number + 1
	long    []uint16 // numbers of the others, by the hash of their first four bytes, longest first
	ends    []uint16 // where the numbers of a hash end in long
}

const (
	wideCodes  = 192
	literal    = 255
	maxSymbol  = 8
	maxSymbols = 4096 // at most wideCodes + 256 * (literal - wideCodes)
	headBits   = 12
	headBytes  = 4

	// perSymbol is how many bytes of text justify one more symbol.
	perSymbol = 48
)

// Learn returns a coder for texts like these.
func Learn(texts [][]byte) *Coder {
	total := 0
	words := map[uint64]uint32{} // how often each occurs
	for _, t := range texts {
		total += len(t)
		for i := 0; i < len(t); {
			n := wordLength(t[i:])
			if n > 1 {
				words[symbolOf(t[i:i+n])]++
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
	for s, count := range words {
		n := symbolLength(s)
		if gain := int(count) * (n - 2); count >= 2 && gain >= 4 {
			all = append(all, candidate{s, n, count, gain})
		}
	}
	order := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.symbol, b.symbol))
	}
	slices.SortFunc(all, order)
	all = all[:min(len(all), min(maxSymbols, max(total/perSymbol, wideCodes))-wideCodes)]
	// What is not part of a learnt word is written by letters or pairs of
	// letters.
	known := &Coder{}
	for _, c := range all {
		known.add(c.symbol, c.length)
	}
	known.index()
	var ones [256]uint32
	pairs := make([]uint32, 1<<16)
	for _, t := range texts {
		before := -1
		for i := 0; i < len(t); {
			if _, n := known.longest(t[i:]); n > 0 {
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
	c.symbols, c.lengths = slices.Clip(c.symbols), slices.Clip(c.lengths)
	c.index()
	return c
}

// TableRow is the size of a symbol in a table, in bytes.
const TableRow = 9

// AppendTable appends the symbols to b, from which ReadTable makes an equal
// coder.
func (c *Coder) AppendTable(b []byte) []byte {
	for i, s := range c.symbols {
		b = binary.LittleEndian.AppendUint64(append(b, c.lengths[i]), s)
	}
	return b
}

// ReadTable returns the coder whose table this is. It is not ok if no coder has
// such a table. Codes that another coder wrote decode to some text or fail.
func ReadTable(table []byte) (c *Coder, ok bool) {
	n := len(table) / TableRow
	if len(table)%TableRow != 0 || n > maxSymbols {
		return nil, false
	}
	c = &Coder{symbols: make([]uint64, n), lengths: make([]uint8, n)}
	for i := range n {
		row := table[TableRow*i:][:TableRow]
		c.lengths[i], c.symbols[i] = row[0], binary.LittleEndian.Uint64(row[1:])
		if l := c.lengths[i]; l == 0 || l > maxSymbol {
			return nil, false
		}
	}
	c.index()
	return c, true
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
	for n < len(t) && n < maxSymbol && t[n] != 0 && letter(t[n]) == letters && !(t[n] == ' ' && n+1 < len(t) && letter(t[n+1])) {
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
	c.symbols = append(c.symbols, symbol)
	c.lengths = append(c.lengths, uint8(length))
}

// Index builds the tables that encoding needs from Symbols and Lengths.
func (c *Coder) index() {
	short := 0
	c.ends = make([]uint16, 1<<headBits+1)
	for n, s := range c.symbols {
		if c.lengths[n] < headBytes {
			short++
		} else {
			c.ends[headHash(s)+1]++
		}
	}
	for h := range c.ends[1:] {
		c.ends[h+1] += c.ends[h]
	}
	// Until the numbers are filled in, ends has where those of a hash begin.
	c.long = make([]uint16, len(c.symbols)-short)
	for length := uint8(maxSymbol); length >= headBytes; length-- {
		for n, s := range c.symbols {
			if c.lengths[n] == length {
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
	for n, s := range c.symbols {
		if c.lengths[n] >= headBytes {
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
	if len(t) >= maxSymbol {
		return c.longestOf(binary.LittleEndian.Uint64(t), maxSymbol)
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
		n := int(c.lengths[k])
		if (head^c.symbols[k])<<(64-8*n) == 0 && n <= left {
			return int(k), n
		}
	}
	for n := min(left, headBytes-1); n > 0; n-- {
		s := head << (64 - 8*n) >> (64 - 8*n)
		for i := c.slot(s); c.slots[i] != 0; i = (i + 1) & (len(c.slots) - 1) {
			if k := int(c.slots[i]) - 1; c.symbols[k] == s && int(c.lengths[k]) == n {
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
	symbols := c.symbols
	lengths := c.lengths[:len(symbols)]
	for i := 0; i < len(codes); {
		// Grow for some codes at a time, because a check for each would cost as
		// much as the rest.
		const some = 256
		stop := min(i+some, len(codes)-1) // the last byte has no successor
		n := len(dst)
		dst = slices.Grow(dst, (some+1)*maxSymbol)
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
	return int64(cap(c.symbols)*9 + 2*(len(c.slots)+len(c.long)+len(c.ends)))
}
