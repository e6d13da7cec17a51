package fence

import (
	"math/bits"
	"strings"
)

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
	if joined, ok := joinPlain(text); ok {
		return cut(joined, limit), true
	}
	space, tidy := true, true // a blank at the start is one too many
	look, blocks := 0, hasPlainBlocks()
	for i := 0; i < len(text); i++ {
		if blocks && i >= look && len(text)-i >= plainLeast && !(space && text[i] == ' ') {
			if n := plainBlocks(text[i:]); n > 0 {
				i += n - plainAhead // what follows may be a letter with an accent
				space = text[i-1] == ' '
			}
			look = i + 32
		}
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
			if mayName(text[i:]) {
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

// joinPlain is joinLines for lines of which each is plain or empty, as those of most answers are. It is not ok for others.
func joinPlain(text string) (string, bool) {
	var b strings.Builder
	for rest := text; ; {
		end := strings.IndexByte(rest, '\n')
		last := end < 0
		if last {
			if end = len(rest); b.Cap() == 0 {
				return "", false // a single line, which plain has seen
			}
		}
		if end > 0 {
			if !plainTo(rest, end) {
				return "", false
			}
			if b.Cap() == 0 {
				b.Grow(len(text) + 8) // a colon of a role's becomes two bytes
			} else if b.Len() > 0 {
				b.WriteByte(' ')
			}
			line := rest[:end]
			if mayBeRole(line) {
				line = defuseRoleLine(line)
			}
			b.WriteString(line)
		} else if b.Cap() == 0 {
			b.Grow(len(text) + 8)
		}
		if last {
			return strings.TrimSpace(b.String()), true
		}
		rest = rest[end+1:]
	}
}

// plain reports whether text is one line of printable ASCII with single blanks between words, without brackets or the fence's
// name, and is right to say no to anything else. It looks at eight bytes at a time: of most text nothing else is done.
func plain(text string) bool { return plainTo(text, len(text)) }

// plainTo is plain for text[:end], but for a name that begins there and goes on behind it.
func plainTo(text string, end int) bool {
	return plainBy(text, end, end >= plainLeast && hasPlainBlocks())
}

// plainLeast is the shortest text that plainBlocks looks at, and plainAhead how many bytes it looks at behind a letter, in bytes.
const (
	plainLeast = 32 + plainAhead
	plainAhead = 3
)

// plainBy is plainTo. blocks says that plainBlocks may be used.
func plainBy(text string, end int, blocks bool) bool {
	const last = 0x80 << 56
	blank := uint64(last) // a blank before the text makes one at its start one too many
	i, look := 0, 0       // from look on, plainBlocks may know more
	for ; i+8 <= end; i += 8 {
		if blocks && i == look && end-i >= plainLeast && (blank&last == 0 || text[i] != ' ') {
			if n := plainBlocks(text[i:end]); n > 0 {
				if i, blank = i+n, 0; text[i-1] == ' ' {
					blank = last
				}
				if i+8 > end {
					break
				}
			}
			look = i + 32
		}
		w := eight(text[i : i+8])
		blanks := equal(w, ' ')
		if oddAmong(w)|blanks&(blanks<<8|blank>>56) != 0 {
			return false
		}
		blank = blanks
		lower := w | each*0x20
		r := equal(lower, 'r')
		// No letter but the name's second may follow; what follows the last is looked at below.
		others := (lower + each*(0x80-'a')) &^ (lower + each*(0x7f-'z')) &^ equal(lower, 'e')
		for r &^= others & (each * 0x80) >> 8; r != 0; r &= r - 1 {
			if mayName(text[i+bits.TrailingZeros64(r)/8:]) {
				return false
			}
		}
	}
	space := blank&last != 0
	for ; i < end; i++ {
		c := text[i]
		if look := looks[c]; look != looksPlain && look != looksLikeName && (look != looksSpace || space) || look == looksLikeName && mayName(text[i:]) {
			return false
		}
		space = c == ' '
	}
	return !space
}

// each times a byte is eight of it.
const each uint64 = 0x0101010101010101

// eight is the first eight bytes of s, in which the first is lowest.
func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// equal has the highest bit of each byte of w that is c, where all are ASCII.
func equal(w uint64, c byte) uint64 { return ^((w ^ each*uint64(c)) + each*0x7f) & (each * 0x80) }

// oddAmong is not 0 where a byte of w is looksOdd, looksBreak, or not ASCII.
func oddAmong(w uint64) uint64 {
	none := func(v uint64) uint64 { return (v - each) &^ v } // the highest bit of some byte, if one of v is 0
	return (w | (w-each*' ')&^w | none(w&^(each*0x40)^each*'<') | none(w^each*'[') | none(w^each*0x7f)) & (each * 0x80)
}

// mayName is spellsName for text that begins with the name's first letter.
func mayName(text string) bool {
	if len(text) > 1 && (text[1]|0x20 >= 'a' && text[1]|0x20 <= 'z' || text[1] >= '0' && text[1] <= '9') && text[1]|0x20 != 'e' {
		return false
	}
	return spellsName(text)
}

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
		if roleStarts[b[start]] != 0 {
			if l := string(b[start:]); mayBeRole(l) {
				b = append(b[:start], defuseRoleLine(l)...)
			}
		}
		b = append(b, ' ')
	}
	return strings.TrimSpace(string(b))
}

// mayBeRole is a cheap necessary condition for defuseRoleLine to change a line: it begins with a sign, or like a role's name
// and has a colon.
func mayBeRole(line string) bool {
	return line != "" && roleStarts[line[0]] != 0 && (roleStarts[line[0]] == signStarts || strings.IndexByte(line, ':') > 0)
}

// How a line that defuseRoleLine changes may start.
const (
	signStarts = 1 + iota
	nameStarts
)

var roleStarts = func() (t [256]uint8) {
	for _, c := range "#*>-= " {
		t[c] = signStarts
	}
	for _, w := range roleWords {
		t[w[0]], t[w[0]&^0x20] = nameStarts, nameStarts
	}
	return t
}()

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
