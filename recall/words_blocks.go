package recall

import "unicode/utf8"

// block tells what stands where among 64 bytes of a text, by a bit of each, the first one's lowest. What is not ASCII has none.
type block struct {
	letters uint64
	signs   uint64 // digits, underscores, and signs of which something is made
	joins   uint64 // what a word of letters that ends before it goes on with
	odd     uint64 // digits, underscores and carriage returns: how far what begins there goes, asciiWord tells
}

const blockSize = 64

// blocksOf returns the blocks of a text and an empty one behind them, in the space of b if that is enough; not ascii if the text is not.
func blocksOf(text string, b []block) (_ []block, ascii bool) {
	n := (len(text) + blockSize - 1) / blockSize
	if cap(b) <= n {
		b = make([]block, 2*n+1)
	}
	b = b[:n+1]
	ascii = readBlocks(b[:n], text) < utf8.RuneSelf
	b[n] = block{}
	for i := range b[:n] { // a sign joins if a letter follows
		next := b[i].letters>>1 | b[i+1].letters<<63
		b[i].joins = b[i].joins&next | b[i].odd
	}
	return b, ascii
}

// readBlocksOneByOne reads a text into as many blocks as it takes, whose joins are all signs that join letters, and returns an OR of
// its bytes.
func readBlocksOneByOne(b []block, text string) (all byte) {
	clear(b)
	for i := range len(text) {
		c := text[i]
		all |= c
		now, bit, kind := &b[i/blockSize], uint64(1)<<(i%blockSize), asciiKinds[c]
		switch {
		case kind == kindLetter:
			now.letters |= bit
		case kind == kindDigit, kind == kindJoiner, c == '\r':
			now.signs |= bit
			now.odd |= bit
		case kind != kindBlank && kind != kindIdle && c != '\'':
			now.signs |= bit
		}
		if kind&joinsLetters != 0 {
			now.joins |= bit
		}
	}
	return all
}
