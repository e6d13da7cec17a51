// Package checkdigit finds and validates numbers that carry check digits: the
// identity numbers of some thirty states, and the check digits of payment cards
// (Luhn) and IBANs (modulo 97).
//
// It hides how each state lays out, announces and checks its numbers. All
// functions are pure, safe for concurrent use, and look at a bounded piece of
// text. Package redact decides what to do with what they find.
package checkdigit

import "strings"

// Luhn reports whether the last of digits is the check digit of ISO/IEC 7812-1,
// annex B.
func Luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0 && sum > 0
}

// Mod97 reports whether digits and letters in lower case have the check digits
// of ISO 13616, which are the third and fourth.
func Mod97(compact []byte) bool {
	remainder := 0
	for k := range compact {
		c := compact[(k+4)%len(compact)]
		if isDigit(c) {
			remainder = (remainder*10 + int(c-'0')) % 97
		} else {
			remainder = (remainder*100 + int(c-'a') + 10) % 97
		}
	}
	return remainder == 1
}

// maxBefore is how far before a number a word may announce it, in bytes.
const maxBefore = 40

// Find returns the kind (an index into [Kinds]) and the end of the identity
// number that begins at text[i]. end is i if there is none. Kinds that are not
// enabled are ignored.
func Find(text string, i int, enabled func(kind int) bool) (kind, end int) {
	if c := at(text, i-1); isWord(c) || c == '-' || c == '.' || c == '+' {
		return 0, i
	}
	shape, lengths := shapeOf(text, i)
	if lengths>>minLength == 0 {
		return 0, i
	}
	before := ""
	for n := range Kinds {
		k := &Kinds[n]
		if !enabled(n) {
			continue
		}
		length := layoutLength(&shape, lengths, k.layouts)
		found := length > 0 && k.valid(compact(text[i:i+length]))
		if !found {
			if length = layoutLength(&shape, lengths, k.worded); length == 0 {
				continue
			}
			if before == "" {
				before = " " + strings.ToLower(text[max(0, i-maxBefore):i])
			}
			valid := k.validWorded
			if valid == nil {
				valid = k.valid
			}
			found = containsAny(before, k.words) && valid(compact(text[i:i+length]))
		}
		if found {
			return n, i + length
		}
	}
	return 0, i
}

// layoutLength returns the length of the layout that a shape begins with and
// may end after, or 0.
func layoutLength(shape *[maxLength]byte, lengths uint32, layouts []string) int {
	for _, layout := range layouts {
		if lengths&(1<<len(layout)) != 0 && string(shape[:len(layout)]) == layout {
			return len(layout)
		}
	}
	return 0
}

// shapeOf returns the text at i with every digit as 0 and letter as A, and a
// bit for each length after which a number may end: no letter, digit or further
// group follows.
func shapeOf(text string, i int) (shape [maxLength]byte, lengths uint32) {
	for n := 0; ; n++ {
		c, next := at(text, i+n), at(text, i+n+1)
		if n > 0 && isAlnum(text[i+n-1]) && !isWord(c) && !((c == '-' || c == '.' || c == '/') && isDigit(next)) {
			lengths |= 1 << n
		}
		switch {
		case n == maxLength || c == 0:
			return shape, lengths
		case isDigit(c):
			shape[n] = '0'
		case isAlnum(c):
			if n > 0 && shape[n-1] == ' ' {
				return shape, lengths // a word
			}
			shape[n] = 'A'
		case strings.IndexByte(" -./+", c) >= 0:
			shape[n] = c
		default:
			return shape, lengths
		}
	}
}

// compact returns text without separators, in capitals.
func compact(text string) string {
	var b [maxLength]byte
	n := 0
	for i := range len(text) {
		if c := text[i]; isAlnum(c) {
			if !isDigit(c) {
				c &^= 0x20
			}
			b[n] = c
			n++
		}
	}
	return string(b[:n])
}

// at returns the byte at i, 0 outside the text.
func at(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return 0
	}
	return text[i]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isWord(c byte) bool  { return isAlnum(c) || c == '_' }

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// distinct returns how many different digits and capitals id has.
func distinct(id string) int {
	n := 0
	for i := range len(id) {
		if strings.IndexByte(id, id[i]) == i {
			n++
		}
	}
	return n
}
