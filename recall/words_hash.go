package recall

import (
	"hash/maphash"
	"math/bits"
)

// wordSeed seeds the hashes of words, so that nobody can choose words that share one.
type wordSeed [2]uint64

func newWordSeed() (s wordSeed) {
	for i := range s {
		s[i] = maphash.Bytes(maphash.MakeSeed(), nil)
	}
	return s
}

// of16 is the hash of a word of n bytes, at most 16: eight, the first lowest, and those behind them, with zeros behind the last.
func (s wordSeed) of16(head, tail uint64, n int) uint64 {
	high, low := bits.Mul64(head^s[0], tail^s[1]^uint64(n)<<56)
	return high ^ low
}

// of is the hash of any word.
func (s wordSeed) of(w string) uint64 {
	n := len(w)
	for len(w) > 16 {
		high, low := bits.Mul64(eight(w)^s[0], eight(w[8:])^s[1])
		s[1] = high ^ low // what stands before counts for what follows
		w = w[16:]
	}
	if len(w) > 8 {
		return s.of16(eight(w), few(w[8:]), n)
	}
	return s.of16(few(w), 0, n)
}

// eight are the first eight bytes of s, the first lowest.
func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// few are all bytes of s, at most eight, the first lowest.
func few(s string) uint64 {
	switch n := len(s); {
	case n == 8:
		return eight(s)
	case n >= 4: // those in the middle twice
		return uint64(four(s)) | uint64(four(s[n-4:]))<<(8*(n-4))
	case n > 0:
		return uint64(s[0]) | uint64(s[n/2])<<(8*(n/2)) | uint64(s[n-1])<<(8*(n-1))
	}
	return 0
}

func four(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// The bytes of eight at once: see letters.
const (
	eachByte = 0x0101010101010101
	highBits = eachByte << 7
)

// letters has the high bit of each of eight ASCII characters that is a letter.
func letters(head uint64) uint64 {
	lower := head | 0x20*eachByte
	return (lower + (0x80-'a')*eachByte) &^ (lower + (0x7f-'z')*eachByte) & highBits
}

// leading cuts eight ASCII characters, the first lowest, behind the letters that they begin with, and returns how many those are.
func leading(head uint64) (word uint64, n int) {
	n = bits.TrailingZeros64(^letters(head)&highBits) >> 3 // 8 where all are
	return head & (1<<(8*n) - 1), n
}
