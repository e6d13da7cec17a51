package recall

// asciiWord returns the end of the word, sign or run of blanks at the start of an ASCII text, by the same rules as UAX #29
// (a fuzz test holds the two together) at a fraction of the cost.
func asciiWord(text string) int {
	c := text[0]
	switch kind := asciiKinds[c]; kind {
	case kindLetter, kindDigit, kindJoiner:
		i := 1
		for before := kind; i < len(text); i++ {
			next := asciiKinds[text[i]]
			if next <= kindJoiner {
				before = next
				continue
			}
			// A sign joins two letters, or two digits.
			if i+1 == len(text) || asciiKinds[text[i+1]] != before {
				break
			}
			if before == kindLetter && next&joinsLetters == 0 || before == kindDigit && next&joinsDigits == 0 || before == kindJoiner {
				break
			}
			i++
		}
		return i
	case kindBlank:
		i := 1
		for i < len(text) && text[i] == ' ' {
			i++
		}
		return i
	}
	if c == '\r' && len(text) > 1 && text[1] == '\n' {
		return 2
	}
	return 1
}

// What a character is to the rules. The first three make words; signs that join have bits.
const (
	kindLetter   uint8 = 1
	kindDigit    uint8 = 2
	kindJoiner   uint8 = 3 // the underscore
	kindBlank    uint8 = 4
	kindOther    uint8 = 8
	joinsLetters uint8 = 16
	joinsDigits  uint8 = 32
)

var asciiKinds = func() (kinds [256]uint8) {
	for c := range kinds {
		kinds[c] = kindOther
	}
	for c := 'a'; c <= 'z'; c++ {
		kinds[c], kinds[c-'a'+'A'] = kindLetter, kindLetter
	}
	for c := '0'; c <= '9'; c++ {
		kinds[c] = kindDigit
	}
	kinds['_'], kinds[' '] = kindJoiner, kindBlank
	kinds['.'], kinds['\''] = joinsLetters|joinsDigits, joinsLetters|joinsDigits
	kinds[':'] = joinsLetters
	kinds[','], kinds[';'] = joinsDigits, joinsDigits
	return kinds
}()
