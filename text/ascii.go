package text

import "unicode/utf8"

// asciiWord returns the length of the word, sign or run of blanks at the start
// of an ASCII text. It follows UAX #29, to which a fuzz test compares it, at a
// fraction of the cost.
func asciiWord(text string) int {
	switch class := asciiClasses[text[0]]; class {
	case classLetter, classDigit, classJoiner:
		i := 1
		for before := class; i < len(text); i++ {
			next := asciiClasses[text[i]]
			if next <= classJoiner {
				before = next
				continue
			}
			// A sign joins two letters, or two digits.
			if i+1 == len(text) || asciiClasses[text[i+1]] != before {
				break
			}
			if before == classLetter && next&joinsLetters == 0 || before == classDigit && next&joinsDigits == 0 || before == classJoiner {
				break
			}
			i++
		}
		return i
	case classBlank:
		i := 1
		for i < len(text) && text[i] == ' ' {
			i++
		}
		return i
	}
	if text[0] == '\r' && len(text) > 1 && text[1] == '\n' {
		return 2
	}
	return 1
}

// Classes of bytes. Words are made of the first three. Signs that may join two
// of them have bits.
const (
	classLetter  uint8 = 1
	classDigit   uint8 = 2
	classJoiner  uint8 = 3 // the underscore
	classBlank   uint8 = 4
	classSign    uint8 = 8  // ends a sentence
	classIgnored uint8 = 12 // a sign without meaning
	joinsLetters uint8 = 16
	joinsDigits  uint8 = 32
)

var asciiClasses = func() (classes [256]uint8) {
	for c := range classes {
		classes[c] = classIgnored
	}
	for _, c := range "!?\r\n" {
		classes[c] = classSign
	}
	for c := 'a'; c <= 'z'; c++ {
		classes[c], classes[c-'a'+'A'] = classLetter, classLetter
	}
	for c := '0'; c <= '9'; c++ {
		classes[c] = classDigit
	}
	classes['_'], classes[' '] = classJoiner, classBlank
	classes['.'], classes['\''] = joinsLetters|joinsDigits, joinsLetters|joinsDigits
	classes[':'] = joinsLetters
	classes[','], classes[';'] = joinsDigits, joinsDigits
	return classes
}()

// IsASCII reports whether s holds nothing but ASCII.
func IsASCII(s string) bool {
	for len(s) >= 8 {
		if s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] >= utf8.RuneSelf {
			return false
		}
		s = s[8:]
	}
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Spaceless reports whether a character is of a script that is written without
// spaces.
func Spaceless(r rune) bool {
	switch {
	case r < 0xe00:
		return false
	case r <= 0xeff: // Thai, Lao
		return true
	case r >= 0x1000 && r <= 0x109f, r >= 0x1780 && r <= 0x17ff: // Myanmar, Khmer
		return true
	case r >= 0x1100 && r <= 0x11ff, r >= 0x3040 && r <= 0x30ff, r >= 0x3130 && r <= 0x318f, r >= 0x31f0 && r <= 0x31ff,
		r >= 0x3400 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7af, r >= 0xf900 && r <= 0xfaff, r >= 0x20000 && r <= 0x323af:
		return true
	}
	return false
}
