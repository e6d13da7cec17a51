package fence

import "strings"

// tag is an opening or closing tag as models and clients return it: in any
// case, with blanks inside, escaped for HTML or JSON. As a regular expression
// it is
//
//	(?i)(?:<|&lt;|\\u003c)\s*(/?)\s*remora-memory-([0-9a-f]{8,64})\s*(?:>|&gt;|\\u003e)
//
// and tests compare the two. Anybody's text is read on the way to the upstream,
// for which the expression is far too slow: its automaton has a state for each
// digit of an id.
type tag struct {
	start, end     int
	idStart, idEnd int
	closing        bool
}

// The length of an id, in hex digits.
const (
	minID = 8
	maxID = 64
)

// allTags returns the tags in text, in order. They can't overlap.
func allTags(text string) []tag {
	var tags []tag
	for at := 0; ; {
		t, found := nextTag(text, at)
		if !found {
			return tags
		}
		tags = append(tags, t)
		at = t.end
	}
}

// nextTag returns the first tag that begins at or after from. Around each name
// it reads only blanks and digits, which no other name shares on that side, so
// reading all tags takes time linear in the text.
func nextTag(text string, from int) (t tag, found bool) {
	for at := from; ; at += len(name) {
		if at = nextName(text, at); at < 0 {
			return tag{}, false
		}
		t.idStart = at + len(name)
		t.idEnd = hexEnd(text, t.idStart)
		if n := t.idEnd - t.idStart; n < minID || n > maxID {
			continue
		}
		closing := spaceEnd(text, t.idEnd)
		n := bracketAt(text[closing:], '>')
		if n == 0 {
			continue
		}
		t.end = closing + n
		if t.start, t.closing = openingBefore(text, at, from); t.start >= 0 {
			return t, true
		}
	}
}

// cutAt returns where a tag begins that the end of the text cuts off, or -1. It
// reads no more of the end than a tag can take.
func cutAt(text string) int {
	const longest = 256
	end := len(strings.TrimRight(text, " \t\r\n\f\v"))
	floor := max(0, end-longest)
	at := end
	for at > floor && end-at < maxID && isHex(text[at-1]) {
		at--
	}
	if at -= len(name); at < floor || !nameAt(text, at) {
		return -1
	}
	start, _ := openingBefore(text, at, floor)
	return start
}

// openingBefore returns where the bracket begins that opens the tag whose name
// is at at, or -1 if none does at or after floor, and whether a slash comes
// between them.
func openingBefore(text string, at, floor int) (start int, closing bool) {
	i := spaceStart(text, at, floor)
	if i > floor && text[i-1] == '/' {
		closing = true
		i = spaceStart(text, i-1, floor)
	}
	for _, n := range [...]int{len("<"), len("&lt;"), len(`\u003c`)} {
		if i-n >= floor && bracketAt(text[i-n:i], '<') == n {
			return i - n, closing
		}
	}
	return -1, false
}

// bracketAt returns the length of the bracket that s begins with, however it is
// written, or 0.
func bracketAt(s string, bracket byte) int {
	entity, escape := "&lt;", `\u003c`
	if bracket == '>' {
		entity, escape = "&gt;", `\u003e`
	}
	switch {
	case s == "":
		return 0
	case s[0] == bracket:
		return 1
	case s[0] == '&' && len(s) >= len(entity) && strings.EqualFold(s[:len(entity)], entity):
		return len(entity)
	case s[0] == '\\' && len(s) >= len(escape) && strings.EqualFold(s[:len(escape)], escape):
		return len(escape)
	}
	return 0
}

// nextName returns where the name first occurs at or after from, in any case,
// or -1.
func nextName(text string, from int) int {
	const hyphen = len("remora")
	for i := from + hyphen; i < len(text); i++ {
		j := strings.IndexByte(text[i:], '-')
		if j < 0 {
			return -1
		}
		if i += j; text[i-1]|0x20 == name[hyphen-1] && nameAt(text, i-hyphen) {
			return i - hyphen
		}
	}
	return -1
}

func nameAt(text string, at int) bool {
	return len(text)-at >= len(name) && strings.EqualFold(text[at:at+len(name)], name)
}

func hexEnd(text string, i int) int {
	for i < len(text) && isHex(text[i]) {
		i++
	}
	return i
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'
}

func spaceEnd(text string, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func spaceStart(text string, i, floor int) int {
	for i > floor && isSpace(text[i-1]) {
		i--
	}
	return i
}
