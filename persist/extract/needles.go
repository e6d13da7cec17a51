package extract

import "strings"

// needles finds whether a text holds one of a few strings, in one pass. A hash of
// three bytes shows where one may begin.
type needles struct {
	bits [1 << 12 / 64]uint64
	list [32][]string // by the last bits of the first byte
}

// newNeedles takes ASCII strings in lower case, of at least three bytes.
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

// in reports whether text holds any of the strings, in upper or lower case.
func (n *needles) in(text string) bool {
	if len(text) < 3 {
		return false
	}
	three := uint32(lowerOf[text[0]])<<8 | uint32(lowerOf[text[1]])<<16
	for i := 2; i < len(text); i++ {
		three = three>>8 | uint32(lowerOf[text[i]])<<16
		if h := needleHash(three); n.bits[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, s := range n.list[text[i-2]%32] {
			if beginsWith(text[i-2:], s) {
				return true
			}
		}
	}
	return false
}

func beginsWith(text, s string) bool {
	if len(text) < len(s) {
		return false
	}
	for i := range len(s) {
		if lowerOf[text[i]] != s[i] {
			return false
		}
	}
	return true
}

// lowerOf maps bytes to ASCII lower case.
var lowerOf = func() (small [256]byte) {
	for c := range small {
		if small[c] = byte(c); c >= 'A' && c <= 'Z' {
			small[c] |= 0x20
		}
	}
	return small
}()

// lowered returns text in a form in which needles finds all its letters: ASCII
// as it is, other text in lower case.
func lowered(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.ToLower(text)
}
