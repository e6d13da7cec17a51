package extract

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// looks is what one look over a text tells of it. Most texts hold nothing that instructs or orders would stop at, and are
// spared their readers. What is said of a text goes for every part of it that no word is cut at the border of: a part may hold
// less, never more.
type looks struct {
	ascii    bool // where not, only foreign is known
	token    bool // one of roleTokens may stand in it
	attempts bool // a word that attempts needs may
	orders   bool // a word that orders needs may; "assistant" is one, so the ASCII of foreignTokens needs no look of its own
	spread   bool // it has a row of letters that unspaced joins
	encoded  bool // a row that decoded looks into
	foreign  bool // what foreignWords needs
}

// mayInstruct is a necessary condition of instructs, mayOrder one of orders.
func (l looks) mayInstruct() bool {
	return !l.ascii || l.token || l.attempts || l.spread || l.encoded
}

func (l looks) mayOrder() bool { return !l.ascii || l.orders || l.spread }

// Signs of bytes, for look.
const (
	signLetter  uint8 = 1 << iota
	signEncoded       // may stand in base64, a letter excepted
	signToken         // begins one of roleTokens
	signForeign       // see foreignWords
	signBetween       // may stand between letters that unspaced joins
	signBlank
	signWide // not ASCII
)

// tokenSeconds are the second bytes of the roleTokens that begin with a byte, in small letters.
var signsOfBytes, tokenSeconds = func() (signs [256]uint8, seconds [128][4]uint64) {
	for c := range signs {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			signs[c] = signLetter
		case c >= '0' && c <= '9':
			signs[c] = signEncoded
		case c >= utf8.RuneSelf:
			signs[c] = signWide
		}
	}
	for _, c := range "+/-_" {
		signs[c] |= signEncoded
	}
	for _, c := range foreignSigns {
		signs[c] |= signForeign
	}
	for _, c := range ".-_" {
		signs[c] |= signBetween
	}
	signs[' '] = signBlank
	for _, t := range roleTokens {
		if t[0] < utf8.RuneSelf {
			signs[t[0]] |= signToken
			seconds[t[0]][t[1]/64] |= 1 << (t[1] % 64)
		}
	}
	return signs, seconds
}()

// lookedFor are the words of attemptWords and orderFilter.
var lookedFor = sync.OnceValue(func() *wordFilter { return newWordFilter(attemptWords.words, orderFilter().words) })

func look(text string) looks {
	l, filter := looks{ascii: true}, lookedFor()
	lone, blanks, row := 0, 0, 0 // lone is how many letters that stand alone follow each other; row is where the row of base64 at hand begins
	for i := 0; i < len(text); {
		sign := signsOfBytes[text[i]]
		if sign&signLetter != 0 {
			from := i
			for i++; i < len(text) && signsOfBytes[text[i]]&signLetter != 0; i++ {
			}
			blanks = 0
			if i-from > 1 {
				lone = 0
			} else if lone++; lone == spacedLetters {
				l.spread = true
			}
			if n := i - from; n <= maxWord && !(l.attempts && l.orders) && filter.may(text[from:i]) {
				l.note(text[from:i])
			}
			continue
		}
		if sign == signBlank {
			if blanks++; blanks == 4 {
				l.foreign = true
			}
			l.encoded = l.encoded || i-row >= leastEncoded
			i++
			row = i
			continue
		}
		blanks = 0
		if sign&signBetween == 0 {
			lone = 0
		}
		if sign&signEncoded == 0 {
			l.encoded = l.encoded || i-row >= leastEncoded
			row = i + 1
		}
		if sign&(signToken|signForeign|signWide) != 0 {
			l.foreign = l.foreign || sign&signForeign != 0
			if sign&signToken != 0 {
				l.sign(text[i:])
			}
			l.ascii = l.ascii && sign&signWide == 0
		}
		i++
	}
	l.encoded = l.encoded || len(text)-row >= leastEncoded
	return l
}

// note takes in a row of letters that lookedFor may have.
func (l *looks) note(row string) {
	var space [maxWord]byte
	small := space[:len(row)]
	for i := range small {
		small[i] = row[i] | 0x20
	}
	l.attempts = l.attempts || attemptWords.has(small)
	l.orders = l.orders || orderFilter().has(small)
}

// sign takes in what begins as a role token does.
func (l *looks) sign(text string) {
	if len(text) < 2 {
		return
	}
	first, second := text[0], text[1]
	if second >= 'A' && second <= 'Z' {
		second |= 0x20
	}
	if l.token || tokenSeconds[first][second/64]&(1<<(second%64)) == 0 {
		return
	}
	for _, t := range roleTokensBy[rune(first)] {
		if beginsLower(text, t) {
			l.token = true
			return
		}
	}
}

// foreignSigns are of what foreignWords takes out; four blanks are, too.
const foreignSigns = "`~<>|$+-@#/\t"

// foreignWords are what ownWords takes out, but for thoughts.
func foreignWords(s string) string {
	if !strings.ContainsAny(s, foreignSigns) && !strings.Contains(s, "    ") {
		return ""
	}
	return foreignOf(s)
}
