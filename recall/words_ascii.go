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
	from, end int32
	place     int32 // of the word in what the analyzer remembers; -1 = it is not there
	hash      uint64
}

const maybeThere = 0 // the place of a word that was not looked for

// wordsAhead is how many words and signs are looked up at once.
const wordsAhead = 16

// cutWord returns the end of the word that begins at from with a letter, and its hash.
func (s wordSeed) cutWord(text string, from int) (end int, hash uint64) {
	if len(text)-from > 16 { // else some of what is read stands behind the end
		head, n := leading(eight(text[from:]))
		tail, more := uint64(0), 0
		if n == 8 {
			tail, more = leading(eight(text[from+8:]))
			n += more
		}
		if end = from + n; more < 8 {
			switch kind := asciiKinds[text[end]]; {
			case kind&kindOther != 0 || kind == kindBlank:
				return end, s.of16(head, tail, n)
			case kind&joinsLetters != 0 && (end+1 == len(text) || asciiKinds[text[end+1]] != kindLetter), kind == joinsDigits:
				return end, s.of16(head, tail, n)
			}
		}
	}
	end = from + asciiWord(text[from:])
	return end, s.of(text[from:end])
}

// ahead finds the words and signs from a place on. What the analyzer knows of each is far away, so all are followed side by side
// rather than each when its turn comes.
func (a *analyzer) ahead(l language, text string, from int, next *[wordsAhead]asciiToken, out *analysis) (n int) {
	for from < len(text) && n < len(next) {
		t, end := &next[n], from+1
		kind := asciiKinds[text[from]]
		switch kind {
		case kindBlank, kindIdle:
			from = end
			continue
		case kindLetter:
			end, t.hash = a.seed.cutWord(text, from)
		case kindDigit, kindJoiner:
			end = from + asciiWord(text[from:])
			t.hash = a.seed.of(text[from:end])
		default:
			end = from + asciiWord(text[from:])
		}
		t.from, t.end, t.place = int32(from), int32(end), -1
		if kind <= kindJoiner && end-from <= maxWord {
			t.hash += uint64(l) * languageFactor
			t.place = maybeThere
		}
		n++
		from = end
	}
	var first [wordsAhead]*word
	for i := range next[:n] {
		if t := &next[i]; t.place == maybeThere {
			t.place = int32(a.place(t.hash))
			first[i] = a.cache[t.place].Load()
		}
	}
	for i := range next[:n] {
		t := &next[i]
		if t.place < 0 {
			continue
		}
		e := first[i]
		if e == nil || e.hash != t.hash {
			t.place++
			if e = a.cache[t.place].Load(); e == nil || e.hash != t.hash {
				t.place = -1
				continue
			}
		}
		if len(e.sole[0]) > 0 {
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
	kindIdle     uint8 = 12 // and nothing is made of it by itself
	joinsLetters uint8 = 16
	joinsDigits  uint8 = 32
)

var asciiKinds = func() (kinds [256]uint8) {
	for c := range kinds {
		kinds[c] = kindIdle
	}
	for _, c := range "!?\r\n" {
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
