package redact

import (
	"strings"
)

// The same value may be written otherwise: with the signs of a URL (%40) or of HTML (&quot;), with spaces and hyphens that
// typesetting has (no-break space, en dash), in full-width characters, or with invisible ones in between. Rules know the plain
// form; such a text is looked at in both.

// written is a text in plain writing.
type decoded struct {
	text string
	at   []int32 // where in the original each byte of text comes from, and where it ends
}

// plainly returns text in plain writing; ok is false where it is that already.
func decodeText(text string) (w decoded, ok bool) {
	i := 0
	for ; i < len(text); i++ {
		if _, n := decodeAt(text, i); n > 0 {
			break
		}
	}
	if i == len(text) {
		return w, false
	}
	var b strings.Builder
	b.Grow(len(text))
	b.WriteString(text[:i])
	w.at = make([]int32, i, len(text)+1)
	for k := range w.at {
		w.at[k] = int32(k)
	}
	for i < len(text) {
		c, n := decodeAt(text, i)
		switch {
		case n == 0:
			b.WriteByte(text[i])
			w.at = append(w.at, int32(i))
			i++
			continue
		case c != 0:
			b.WriteByte(c)
			w.at = append(w.at, int32(i))
		}
		i += n
	}
	w.at = append(w.at, int32(len(text)))
	w.text = b.String()
	return w, true
}

// plainAt returns what the n bytes at i stand for, 0 for nothing at all; n is 0 where they stand for themselves.
func decodeAt(text string, i int) (c byte, n int) {
	switch text[i] {
	case '%':
		if i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
			if c = unhex(text[i+1])<<4 | unhex(text[i+2]); c >= ' ' && c < 0x7f {
				return c, 3
			}
		}
	case '&':
		return decodeEntity(text, i)
	case '+': // a space of a form, in a number of groups of four
		if i >= 4 && i+4 < len(text) && digits(text[i-4:i]) && digits(text[i+1:i+5]) {
			return ' ', 1
		}
	case 0xc2:
		if i+1 < len(text) {
			switch text[i+1] {
			case 0xa0: // no-break space
				return ' ', 2
			case 0xad: // soft hyphen
				return 0, 2
			}
		}
	case 0xe2, 0xe3, 0xef:
		if i+2 < len(text) {
			return decodeWide(text[i], text[i+1], text[i+2])
		}
	}
	return 0, 0
}

// wideAt is plainAt for three bytes of UTF-8.
func decodeWide(a, b, c byte) (byte, int) {
	switch {
	case a == 0xe2 && b == 0x80 && c >= 0x80 && c <= 0x8a, a == 0xe2 && b == 0x80 && c == 0xaf, a == 0xe2 && b == 0x81 && c == 0x9f, a == 0xe3 && b == 0x80 && c == 0x80:
		return ' ', 3 // U+2000 to U+200A, U+202F, U+205F, U+3000
	case a == 0xe2 && b == 0x80 && (c == 0x8b || c == 0x8c || c == 0x8d || c == 0x8e || c == 0x8f), a == 0xe2 && b == 0x81 && c == 0xa0, a == 0xef && b == 0xbb && c == 0xbf:
		return 0, 3 // of no width
	case a == 0xe2 && b == 0x80 && c >= 0x90 && c <= 0x95, a == 0xe2 && b == 0x88 && c == 0x92:
		return '-', 3 // U+2010 to U+2015, minus
	case a == 0xef && b == 0xbc && c >= 0x81 && c <= 0xbf:
		return c - 0x81 + '!', 3 // full width, U+FF01 to U+FF3F
	case a == 0xef && b == 0xbd && c >= 0x80 && c <= 0x9e:
		return c - 0x80 + '`', 3
	}
	return 0, 0
}

var entities = [...]struct {
	name string
	c    byte
}{{"&quot;", '"'}, {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&apos;", '\''}, {"&nbsp;", ' '}, {"&commat;", '@'}}

func decodeEntity(text string, i int) (byte, int) {
	rest := text[i:]
	if len(rest) < 4 {
		return 0, 0
	}
	if rest[1] != '#' {
		for _, e := range entities {
			if strings.HasPrefix(rest, e.name) {
				return e.c, len(e.name)
			}
		}
		return 0, 0
	}
	hex := rest[2]|0x20 == 'x'
	k, v := 2, 0
	if hex {
		k++
	}
	for first := k; k < len(rest) && k < first+6; k++ {
		switch c := rest[k]; {
		case c == ';' && k > first:
			if v >= ' ' && v < 0x7f {
				return byte(v), k + 1
			} else if v == 0xa0 {
				return ' ', k + 1
			}
			return 0, 0
		case hex && isHex(c):
			v = v<<4 | int(unhex(c))
		case !hex && isDigit(c):
			v = 10*v + int(c-'0')
		default:
			return 0, 0
		}
	}
	return 0, 0
}

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func digits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}
