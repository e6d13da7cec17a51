package dialect

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote decodes the JSON string raw, quotes included. ok is false if it has
// bare control characters or unknown escapes, which checked strings never have.
// Invalid UTF-8 and lone surrogates become U+FFFD, as in encoding/json.
func unquote(raw []byte) (_ string, ok bool) {
	inner := raw[1 : len(raw)-1]
	if plainPrefix(inner) == len(inner) {
		return string(inner), true
	}
	text, ok := appendUnquoted(make([]byte, 0, len(inner)), raw)
	return string(text), ok
}

// plainPrefix returns how many of the first bytes of a string's contents stand
// for themselves: printable ASCII except quote and backslash.
func plainPrefix[T string | []byte](b T) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		w := b[n : n+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 | uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		if m := special(x) | x&highs; m != 0 {
			return n + bits.TrailingZeros64(m)/8
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' && b[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// unquotePrefix decodes the first n bytes of the JSON string raw, as written,
// or as many as the last character needs. The rest is not examined.
func unquotePrefix(raw []byte, n int) (_ string, ok bool) {
	if len(raw)-2 <= n {
		return unquote(raw)
	}
	at := 1
	var char [utf8.UTFMax]byte
	for at-1 < n && at < len(raw)-1 {
		var size int
		switch {
		case raw[at] == '\\':
			if _, size = appendEscape(char[:0], raw[at:len(raw)-1]); size == 0 {
				return "", false
			}
		case raw[at] >= utf8.RuneSelf:
			_, size = utf8.DecodeRune(raw[at : len(raw)-1])
		default:
			size = max(1, min(plainPrefix(raw[at:len(raw)-1]), n+1-at))
		}
		at += size
	}
	if plainPrefix(raw[1:at]) == at-1 {
		return string(raw[1:at]), true
	}
	text, ok := appendUnquoted(make([]byte, 0, at), raw[:at+1]) // drops the last byte
	return string(text), ok
}

// str consumes a value and returns it decoded if it is a string, else "".
func (s *scanner) str() string {
	v := s.skip()
	if s.err != nil || s.b[v.start] != '"' {
		return ""
	}
	return s.decode(v)
}

// decode returns the decoded string at v. The scanner fails if it is malformed.
func (s *scanner) decode(v span) string {
	text, ok := unquote(s.b[v.start:v.end])
	if !ok {
		s.fail(ErrMalformed)
		return ""
	}
	return text
}

// appendUnquoted appends the result of unquote to dst.
func appendUnquoted(dst, raw []byte) (_ []byte, ok bool) {
	for b := raw[1 : len(raw)-1]; len(b) > 0; {
		switch c := b[0]; {
		case c == '\\':
			var n int
			if dst, n = appendEscape(dst, b); n == 0 {
				return dst, false
			}
			b = b[n:]
		case c < ' ', c == '"':
			return dst, false
		case c < utf8.RuneSelf:
			n := plainPrefix(b)
			dst = append(dst, b[:n]...)
			b = b[n:]
		default:
			r, n := utf8.DecodeRune(b)
			dst = utf8.AppendRune(dst, r)
			b = b[n:]
		}
	}
	return dst, true
}

// appendEscape decodes the escape, or surrogate pair of escapes, at the start
// of b. n is its length, 0 if it is invalid.
func appendEscape(dst, b []byte) (_ []byte, n int) {
	if len(b) < 2 {
		return dst, 0
	}
	switch c := b[1]; c {
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
		high, ok := hex4(b[2:])
		if !ok {
			return dst, 0
		}
		if utf16.IsSurrogate(high) {
			if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
				low, _ := hex4(b[8:])
				if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
					return utf8.AppendRune(dst, r), 12
				}
			}
			high = utf8.RuneError
		}
		return utf8.AppendRune(dst, high), 6
	case '"', '\\', '/':
		return append(dst, c), 2
	default:
		return dst, 0
	}
}

// hex4 parses the four hexadecimal digits at the start of b.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendQuoted appends text as the contents of a JSON string. The same text
// always gives the same bytes: the shortest escapes, and none that JSON does
// not require, except for U+2028 and U+2029, which break servers that read JSON
// as JavaScript. Invalid UTF-8 becomes U+FFFD.
func appendQuoted(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	if cap(dst)-len(dst) < len(text) {
		dst = slices.Grow(dst, quotedLen(text))
	}
	kept := 0 // text[kept:i] is copied unchanged
	for i := plainPrefix(text); i < len(text); i += plainPrefix(text[i:]) {
		c := text[i]
		if c < utf8.RuneSelf {
			dst = append(dst, text[kept:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, `\n`...)
			case '\r':
				dst = append(dst, `\r`...)
			case '\t':
				dst = append(dst, `\t`...)
			default:
				dst = append(append(dst, `\u00`...), digits[c>>4], digits[c&15])
			}
			i++
			kept = i
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		var as string
		switch {
		case r == '\u2028':
			as = `\u2028`
		case r == '\u2029':
			as = `\u2029`
		case r == utf8.RuneError && n == 1:
			as = "\uFFFD"
		}
		if as != "" {
			dst = append(append(dst, text[kept:i]...), as...)
			kept = i + n
		}
		i += n
	}
	return append(dst, text[kept:]...)
}

// quotedLen returns the length of most texts after appendQuoted; few get
// longer.
func quotedLen(text string) int {
	return len(text) + strings.Count(text, "\n") + strings.Count(text, `"`) + strings.Count(text, `\`)
}

// name returns the key at k, decoded.
func (s *scanner) name(k key) string {
	if k.escaped {
		name, _ := unquote(s.b[k.start-1 : k.end+1]) // keys are checked
		return name
	}
	return string(s.b[k.start:k.end])
}

// escaped reports whether the value at v has escapes. No client escapes the
// words that are compared here.
func (s *scanner) escaped(v span) bool { return bytes.IndexByte(s.b[v.start:v.end], '\\') >= 0 }

// mimics reports whether some server may read the key at k, which is not
// spelled name, as name: because it is escaped (no client escapes the keys that
// matter, so the decoded key does not count), or because it differs only in
// case, which Go's decoders ignore.
func (s *scanner) mimics(k key, name string) bool {
	// A folded letter takes up to three bytes: U+212A for k, U+017F for s.
	n := k.end - k.start
	return k.escaped || n >= len(name) && n <= 3*len(name) && strings.EqualFold(string(s.b[k.start:k.end]), name)
}

// is reports whether the key at k, decoded, is name.
func (k key) is(b []byte, name string) bool {
	if !k.escaped {
		return string(b[k.start:k.end]) == name
	}
	if k.end-k.start > 6*len(name) { // no escape is longer
		return false
	}
	got, _ := unquote(b[k.start-1 : k.end+1]) // keys are checked
	return got == name
}
