package fence

import "strings"

// shortcut is Neutralise for nearly all text: printable ASCII, letters of western European languages and the usual quotation
// marks and dashes, in any number of lines, without brackets or the fence's name. Of such text only white space and the
// beginnings of lines can be amiss. It is not ok for any other.
func shortcut(text string, limit int) (string, bool) {
	if text == "" || len(text) > limit {
		return "", false
	}
	if plain(text) {
		if !mayBeRole(text) {
			return text, true
		}
		return cut(strings.TrimSpace(defuseRoleLine(text)), limit), true
	}
	space, tidy := true, true // a blank at the start is one too many
	for i := 0; i < len(text); i++ {
		switch looks[text[i]] {
		case looksPlain:
			space = false
		case looksSpace:
			if space {
				tidy = false
			}
			space = true
		case looksBreak:
			tidy = false
		case looksLikeName:
			space = false
			if spellsName(text[i:]) {
				return "", false
			}
		case looksLetter:
			space = false
			if !latinLetter(text[i:]) {
				return "", false
			}
			i++
		case looksMark:
			space = false
			if !plainMark(text[i:]) {
				return "", false
			}
			i += 2
		default:
			return "", false
		}
	}
	if tidy && !space {
		if !mayBeRole(text) {
			return text, true
		}
		return cut(strings.TrimSpace(defuseRoleLine(text)), limit), true
	}
	return cut(joinLines(text), limit), true
}

// plain reports whether text is one line of printable ASCII with single blanks between words, without brackets or the fence's
// name. It takes a branch for each r instead of one for each byte, and is right to say no to anything else.
func plain(text string) bool {
	odd, space := uint8(0), plainSpace // a blank at the start is one too many
	for i := 0; i < len(text); i++ {
		c := plainBits[text[i]]
		odd |= c & (plainOdd | space)
		space = c & plainSpace
	}
	if odd != 0 || space != 0 {
		return false
	}
	for _, r := range [...]byte{'r', 'R'} {
		for from := 0; ; {
			i := strings.IndexByte(text[from:], r)
			if i < 0 {
				break
			}
			from += i + 1
			if from < len(text) && plainBits[text[from]]&plainLetter != 0 && text[from]|0x20 != 'e' {
				continue // no other letter than the name's second may follow
			}
			if spellsName(text[from-1:]) {
				return false
			}
		}
	}
	return true
}

const (
	plainOdd uint8 = 1 << iota
	plainSpace
	plainLetter // or a digit
)

var plainBits = func() (t [256]uint8) {
	for c := range t {
		switch looks[c] {
		case looksSpace:
			t[c] = plainSpace
		case looksPlain, looksLikeName:
			if l := c | 0x20; l >= 'a' && l <= 'z' || c >= '0' && c <= '9' {
				t[c] = plainLetter
			}
		default:
			t[c] = plainOdd
		}
	}
	return t
}()

// joinLines is what visibleLines and defuseRoleLine make of such text, with blanks between the lines.
func joinLines(text string) string {
	b := make([]byte, 0, len(text)+8)
	for rest := text; rest != ""; {
		line := rest
		if end := strings.IndexAny(rest, "\n\r"); end >= 0 {
			line, rest = rest[:end], rest[end+1:]
		} else {
			rest = ""
		}
		start := len(b)
		space := false
		for i := range len(line) {
			switch c := line[i]; {
			case c == ' ' || c == '\t':
				space = true
			case space && len(b) > start:
				b = append(b, ' ', c)
				space = false
			default:
				b = append(b, c)
				space = false
			}
		}
		if len(b) == start {
			continue
		}
		if l := b[start:]; mayBeRole(string(l[:1])) {
			b = append(b[:start], defuseRoleLine(string(l))...)
		}
		b = append(b, ' ')
	}
	return strings.TrimSpace(string(b))
}

// mayBeRole is a cheap necessary condition for defuseRoleLine to change a line: it begins like a role's name, or with a
// sign.
func mayBeRole(line string) bool {
	return line != "" && (strings.IndexByte("#*>-= ", line[0]) >= 0 || strings.IndexByte("hasudtir", line[0]|0x20) >= 0)
}

// latinLetter reports whether s begins with a letter from U+00C0 to U+00FF. Accents off, none of them is an r or an m.
func latinLetter(s string) bool {
	return len(s) > 1 && s[1] >= 0x80 && s[1] <= 0xbf && s[1] != 0x97 && s[1] != 0xb7 // but the signs of multiplication and division
}

// plainMark reports whether s begins with a quotation mark, a dash or an ellipsis.
func plainMark(s string) bool {
	if len(s) < 3 || s[1] != 0x80 {
		return false
	}
	switch s[2] {
	case 0x93, 0x94, 0x98, 0x99, 0x9c, 0x9d, 0xa6:
		return true
	}
	return false
}

// spellsName says whether s begins with the letters of the fence's name, whatever signs stand between them. A letter with
// an accent passes for any vowel, which is more than Neutralise would say.
func spellsName(s string) bool {
	matched := 0
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		switch {
		case c == letters[matched]:
			if matched++; matched == len(letters) {
				return true
			}
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return false
		case looks[s[i]] == looksLetter:
			if c := letters[matched]; c == 'r' || c == 'm' {
				return false
			}
			i++
			if matched++; matched == len(letters) {
				return true
			}
		}
	}
	return false
}

// How a byte looks to shortcut.
const (
	looksOdd = iota
	looksPlain
	looksSpace
	looksBreak    // ends a line, or is a tab
	looksLikeName // the name's first letter
	looksLetter   // begins a letter of two bytes
	looksMark     // begins a mark of three bytes
)

var looks = func() (t [256]uint8) {
	for c := '!'; c <= '~'; c++ {
		t[c] = looksPlain
	}
	t['<'], t['['], t['|'] = looksOdd, looksOdd, looksOdd
	t[' '], t['r'], t['R'] = looksSpace, looksLikeName, looksLikeName
	t['\n'], t['\r'], t['\t'] = looksBreak, looksBreak, looksBreak
	t[0xc3], t[0xe2] = looksLetter, looksMark
	return t
}()
