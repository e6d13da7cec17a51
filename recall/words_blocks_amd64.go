package recall

import "golang.org/x/sys/cpu"

// readBlocks is readBlocksOneByOne.
func readBlocks(b []block, text string) (all byte) {
	if !cpu.X86.HasAVX2 || len(b) == 0 {
		return readBlocksOneByOne(b, text)
	}
	return readBlocksAtOnce(&b[0], text, &charClasses)
}

// charClasses has the classes that a character may be of by its low half, and those by its high half: it is of those that both have.
var charClasses = [2][16]byte{
	{
		ofDigit, ofDigit | ofSign2, ofDigit, ofDigit, ofDigit, ofDigit, ofDigit, ofDigit | ofJoin2, ofDigit, ofDigit,
		ofSign0 | ofSign3 | ofJoin3, ofSign3, ofSign2, ofReturn, ofSign2 | ofJoin2, ofSign3 | ofUnderscore,
	},
	{0: ofSign0 | ofReturn, 2: ofSign2 | ofJoin2, 3: ofDigit | ofSign3 | ofJoin3, 5: ofUnderscore},
}

// The classes that make a bit of signs, odd and joins are 0xcf, 0xc8 and 0x30.
const (
	ofSign0  = 1 << iota // LF
	ofSign2              // ! , .
	ofSign3              // : ; ?
	ofReturn             // CR
	ofJoin2              // ' .
	ofJoin3              // :
	ofDigit
	ofUnderscore
)

// readBlocksAtOnce is readBlocksOneByOne.
//
//go:noescape
func readBlocksAtOnce(b *block, text string, classes *[2][16]byte) (all byte)
