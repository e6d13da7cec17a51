package redact

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoded is a text with encoded characters replaced by the ASCII ones that
// they stand for: URL escapes (%40), HTML entities (&quot;), typographic spaces
// and hyphens, full-width and invisible characters. Rules know only the plain
// form, so such a text is scanned in both.
type decoded struct {
	text string
	at   []int32 // offset in the original of each byte of text, and of its end
}

// decodeText returns text decoded; ok is false if that changes nothing.
func decodeText(text string) (d decoded, ok bool) {
	i := 0
	for ; i < len(text); i++ {
		if !encoded[text[i]] {
			continue
		}
		if _, n := decodeAt(text, i); n > 0 {
			break
		}
	}
	if i == len(text) {
		return d, false
	}
	var b strings.Builder
	b.Grow(len(text))
	b.WriteString(text[:i])
	d.at = make([]int32, i, len(text)+1)
	for k := range d.at {
		d.at[k] = int32(k)
	}
	for i < len(text) {
		c, n := decodeAt(text, i)
		if n == 0 {
			c, n = text[i], 1
		}
		if c != 0 || text[i] == 0 {
			b.WriteByte(c)
			d.at = append(d.at, int32(i))
		}
		i += n
	}
	d.at = append(d.at, int32(len(text)))
	d.text = b.String()
	return d, true
}

// encoded has the bytes at which decodeAt may find something.
var encoded = [256]bool{'%': true, '&': true, '+': true, 0xc2: true, 0xe2: true, 0xe3: true, 0xef: true}

// decodeAt returns the character that the n bytes at i stand for, 0 for none at
// all. n is 0 if they stand for themselves.
func decodeAt(text string, i int) (c byte, n int) {
	switch b := text[i]; {
	case b == '%':
		if i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
			if v, _ := strconv.ParseUint(text[i+1:i+3], 16, 8); v >= ' ' && v < 0x7f {
				return byte(v), 3
			}
		}
	case b == '&':
		if n = strings.IndexByte(text[i:min(len(text), i+maxEntity)], ';') + 1; n > 0 {
			if plain := html.UnescapeString(text[i : i+n]); len(plain) < n {
				if r, size := utf8.DecodeRuneInString(plain); size == len(plain) && (r >= ' ' && r < 0x7f || r == '\u00a0') {
					return strings.ReplaceAll(plain, "\u00a0", " ")[0], n
				}
			}
		}
	case b == '+': // a space in a form, within a number in groups of four
		if i >= 4 && i+4 < len(text) && isDigits(text[i-4:i]) && isDigits(text[i+1:i+5]) {
			return ' ', 1
		}
	case b == 0xc2 || b == 0xe2 || b == 0xe3 || b == 0xef:
		r, size := utf8.DecodeRuneInString(text[i:])
		return decodeRune(r, size)
	}
	return 0, 0
}

// maxEntity is the longest HTML entity that is decoded, in bytes.
const maxEntity = 10

// decodeRune is decodeAt for a character outside ASCII.
func decodeRune(r rune, size int) (byte, int) {
	switch {
	case r == '\u00a0' || r >= '\u2000' && r <= '\u200a' || r == '\u202f' || r == '\u205f' || r == '\u3000':
		return ' ', size
	case r == '\u00ad' || r >= '\u200b' && r <= '\u200f' || r == '\u2060' || r == '\ufeff':
		return 0, size // without width
	case r >= '\u2010' && r <= '\u2015' || r == '\u2212':
		return '-', size
	case r >= '\uff01' && r <= '\uff5e': // full width
		return byte(r - '\uff01' + '!'), size
	}
	return 0, 0
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
