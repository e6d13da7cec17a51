package persist

import "strings"

// needles finds whether a text holds one of a few strings, in one pass: what three bytes hash to says whether one may begin there.
type needles struct {
	bits [1 << 12 / 64]uint64
	list [32][]string // by the last bits of the first byte
}

// newNeedles takes strings of ASCII in small letters, of three bytes at least.
func newNeedles(all ...string) *needles {
	n := &needles{}
	for _, s := range all {
		if len(s) < 3 {
			panic("needle too short: " + s)
		}
		h := needleHash(uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16)
		n.bits[h/64] |= 1 << (h % 64)
		n.list[s[0]%32] = append(n.list[s[0]%32], s)
	}
	return n
}

func needleHash(three uint32) uint32 { return three * 0x9e3779b1 >> (32 - 12) }

// in says whether lower, which is in small letters, holds any.
func (n *needles) in(lower string) bool {
	if len(lower) < 3 {
		return false
	}
	three := uint32(lower[0])<<8 | uint32(lower[1])<<16
	for i := 2; i < len(lower); i++ {
		three = three>>8 | uint32(lower[i])<<16
		if h := needleHash(three); n.bits[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, s := range n.list[lower[i-2]%32] {
			if strings.HasPrefix(lower[i-2:], s) {
				return true
			}
		}
	}
	return false
}
