package recall

import "math/bits"

// setAside finds the islands of a text, whose blocks then know nothing of them: what is not ASCII, and what stands around it up to
// where words are sure to end, by UAX #29, whatever it is. That is behind a line feed, and before a blank or the end of a line; a mark
// at an island's start may belong to the blank before it, which is a part of the island, too. A text that ends within a character is an
// island: the end belongs to the word before it, whatever stands between.
func (r *reading) setAside(text string) {
	if endsWithin(text) {
		r.islands = append(r.islands, span32{0, int32(len(text))})
		r.cover(0, len(text))
		return
	}
	end := 0
	for i := nextHigh(text, 0); i < len(text); i = nextHigh(text, end) {
		from := i
		for from > end && text[from-1] != ' ' && text[from-1] != '\n' {
			from--
		}
		if from > end && text[from-1] == ' ' {
			from--
		}
		last := end
		for end = i; end < len(text) && text[end] != ' ' && text[end] != '\n' && text[end] != '\r'; {
			end++
		}
		if n := len(r.islands); n > 0 && from == last {
			r.islands[n-1].to = int32(end)
		} else {
			r.islands = append(r.islands, span32{int32(from), int32(end)})
		}
		r.cover(from, end)
	}
}

// endsWithin reports whether a character begins at the text's end that would take more bytes than there are, whatever those are.
func endsWithin(text string) bool {
	n := len(text)
	for i := max(n-3, 0); i < n; i++ {
		if c := text[i]; c >= 0xf0 || c >= 0xe0 && i > n-3 || c >= 0xc0 && i > n-2 {
			return true
		}
	}
	return false
}

// cover takes what stands from one place to another out of the blocks.
func (f *finding) cover(from, to int) {
	for n := from / blockSize; n*blockSize < to; n++ {
		keep := uint64(0)
		if before := from - n*blockSize; before > 0 {
			keep = 1<<before - 1
		}
		if behind := to - n*blockSize; behind < blockSize {
			keep |= ^uint64(0) << behind
		}
		b := &f.blocks[n]
		b.letters, b.signs, b.joins, b.odd = b.letters&keep, b.signs&keep, b.joins&keep, b.odd&keep
	}
}

// nextHigh is where the first byte from i on stands that is not ASCII, or the end.
func nextHigh(text string, i int) int {
	for ; i+8 <= len(text); i += 8 {
		if high := eight(text[i:]) & highBits; high != 0 {
			return i + bits.TrailingZeros64(high)/8
		}
	}
	for i < len(text) && text[i] < 0x80 {
		i++
	}
	return i
}
