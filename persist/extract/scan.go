package extract

import (
	"strings"
	"unicode/utf8"
)

// flags is what one scan of a text finds. Most texts hold nothing that
// instructs or orders could match, and are spared the slower readers. The flags
// of a text include those of every part of it that is cut between words.
type flags struct {
	ascii          bool // if not, only foreign is meaningful
	token          bool // it may hold one of roleTokens
	overridesRules bool // it may hold a word that overridesRules needs
	orders         bool // it may hold a word that orders needs; "assistant" is one, which covers the ASCII of foreignTokens
	spread         bool // it has a run of letters that unspaced joins
	encoded        bool // it has a run that decoded decodes
	foreign        bool // it may have foreignText
}

// mayInstruct and mayOrder are necessary conditions of instructs and orders.
func (l flags) mayInstruct() bool {
	return !l.ascii || l.token || l.overridesRules || l.spread || l.encoded
}

func (l flags) mayOrder() bool { return !l.ascii || l.orders || l.spread }

// Signs of bytes, for scan.
const (
	signLetter  uint8 = 1 << iota
	signEncoded       // in base64, letters excepted
	signToken         // begins one of roleTokens
	signForeign       // see foreignText
	signBetween       // between letters that unspaced joins
	signBlank
	signWide // not ASCII
)

var byteSigns = func() (signs [256]uint8) {
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
		}
	}
	return signs
}()

// scan reads a text once.
func scan(text string) flags {
	l := flags{ascii: true}
	singles, blanks, row := 0, 0, 0 // single letters and spaces in a row, and where the current run of base64 begins
	for i := 0; i < len(text); {
		sign := byteSigns[text[i]]
		if sign&signLetter != 0 {
			from := i
			for i++; i < len(text) && byteSigns[text[i]]&signLetter != 0; i++ {
			}
			blanks = 0
			if i-from > 1 {
				singles = 0
			} else if singles++; singles == spacedLetters {
				l.spread = true
			}
			if i-from <= maxWord && !(l.overridesRules && l.orders) {
				l.note(text[from:i])
			}
			continue
		}
		if sign == signBlank {
			if blanks++; blanks == 4 {
				l.foreign = true
			}
			l.encoded = l.encoded || i-row >= minEncoded
			i++
			row = i
			continue
		}
		blanks = 0
		if sign&signBetween == 0 {
			singles = 0
		}
		if sign&signEncoded == 0 {
			l.encoded = l.encoded || i-row >= minEncoded
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
	l.encoded = l.encoded || len(text)-row >= minEncoded
	return l
}

// note looks up a run of letters.
func (l *flags) note(row string) {
	var space [maxWord]byte
	small := space[:len(row)]
	for i := range small {
		small[i] = row[i] | 0x20
	}
	l.overridesRules = l.overridesRules || attemptWords[string(small)]
	l.orders = l.orders || orderWords()[string(small)]
}

// sign looks for a role token at the start of text.
func (l *flags) sign(text string) {
	for _, t := range roleTokensBy[rune(text[0])] {
		l.token = l.token || beginsLower(text, t)
	}
}

// foreignSigns occur in all that foreignText returns, as do four spaces.
const foreignSigns = "`~<>|$+-@#/\t"

// foreignText returns what ownWords removes, thoughts excepted.
func foreignText(s string) string {
	if !strings.ContainsAny(s, foreignSigns) && !strings.Contains(s, "    ") {
		return ""
	}
	return collectForeign(s)
}
