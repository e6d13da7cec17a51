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

// asciiToken is a word or a sign of an ASCII text.
type asciiToken struct {
	from, end int
	hash      uint64
	known     *word // what the cache has; nil = look for it
}

// wordsAhead is how many words and signs are looked up at once.
const wordsAhead = 16

// ahead finds the words and signs from a place on. What the cache knows of each is far away, at the end of two pointers, so all
// are followed side by side rather than each when its turn comes.
func (a *analyzer) ahead(l language, text string, from int, next *[wordsAhead]asciiToken, out *analysis) (n int) {
	for from < len(text) && n < len(next) {
		end := from + asciiWord(text[from:])
		if text[from] != ' ' {
			t := &next[n]
			t.from, t.end, t.known = from, end, nil
			if asciiKinds[text[from]] <= kindJoiner && end-from <= maxWord {
				t.hash = a.hash(l, text[from:end])
				t.known = a.cache[a.place(t.hash)].Load()
			}
			n++
		}
		from = end
	}
	for i := range next[:n] {
		if t := &next[i]; t.known != nil && t.known.hash != t.hash {
			if t.known = a.cache[a.place(t.hash)+1].Load(); t.known != nil && t.known.hash != t.hash {
				t.known = nil
			}
		}
	}
	if a.of != nil { // the number is all that is asked for
		return n
	}
	for i := range next[:n] {
		if e := next[i].known; e != nil && len(e.sole[0]) > 0 {
			out.sink += e.sole[0][0]
		}
	}
	return n
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
