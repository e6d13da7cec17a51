package documents

import (
	"bytes"
	"strconv"
	"strings"
)

// The tokens and values of a PDF that have no type of Go. Numbers are int64 and
// float64, strings are string, arrays []any, dictionaries map[pdfName]any.
type (
	pdfName string // without its slash
	pdfWord string // an operator, or one of << >> [ ] { }
	pdfRef  struct{ number, generation int64 }
)

const maxNesting = 64 // of arrays and dictionaries

// pdfLexer reads the tokens of content streams, of character maps and of whole
// files. It never fails: what is no token is skipped.
type pdfLexer struct {
	data    []byte
	at      int
	content bool // no references, as in content streams: 1 0 R is two numbers and a word
}

// token returns the next token, or false at the end.
func (l *pdfLexer) token() (any, bool) {
	l.space()
	if l.at >= len(l.data) {
		return nil, false
	}
	c := l.data[l.at]
	l.at++
	switch c {
	case '(':
		return l.literal(), true
	case '/':
		return l.name(), true
	case '[', ']', '{', '}':
		return pdfWord(c), true
	case '<', '>':
		if l.at < len(l.data) && l.data[l.at] == c {
			l.at++
			return pdfWord([]byte{c, c}), true
		}
		if c == '<' {
			return l.hex(), true
		}
		return pdfWord(c), true
	case ')':
		return pdfWord(c), true
	}
	start := l.at - 1
	for l.at < len(l.data) && !isDelimiter(l.data[l.at]) {
		l.at++
	}
	return number(string(l.data[start:l.at])), true
}

// space skips white space and comments.
func (l *pdfLexer) space() {
	for l.at < len(l.data) {
		switch c := l.data[l.at]; {
		case isPDFSpace(c):
			l.at++
		case c == '%':
			if i := bytes.IndexAny(l.data[l.at:], "\r\n"); i >= 0 {
				l.at += i
			} else {
				l.at = len(l.data)
			}
		default:
			return
		}
	}
}

// number returns a number, or the word that is none.
func number(word string) any {
	digits := strings.TrimLeft(word, "+-")
	if len(word)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return pdfWord(word)
	}
	if i, err := strconv.ParseInt(word, 10, 64); err == nil {
		return i
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil && strings.Contains(word, ".") {
		return f
	}
	return pdfWord(word)
}

// literal reads a string in parentheses.
func (l *pdfLexer) literal() string {
	var b []byte
	for depth := 1; l.at < len(l.data); {
		c := l.data[l.at]
		l.at++
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return string(b)
			}
		case '\\':
			b = l.escape(b)
			continue
		}
		b = append(b, c)
	}
	return string(b)
}

// escape reads what follows a backslash.
func (l *pdfLexer) escape(b []byte) []byte {
	if l.at >= len(l.data) {
		return b
	}
	c := l.data[l.at]
	l.at++
	if i := strings.IndexByte("nrtbf", c); i >= 0 {
		return append(b, "\n\r\t\b\f"[i])
	}
	switch {
	case c == '\r' && l.at < len(l.data) && l.data[l.at] == '\n':
		l.at++
		return b
	case c == '\r' || c == '\n':
		return b
	case c < '0' || c > '7':
		return append(b, c)
	}
	octal := int(c - '0')
	for n := 1; n < 3 && l.at < len(l.data) && l.data[l.at] >= '0' && l.data[l.at] <= '7'; n++ {
		octal = octal*8 + int(l.data[l.at]-'0')
		l.at++
	}
	return append(b, byte(octal))
}

// hex reads a string in hexadecimal digits.
func (l *pdfLexer) hex() string {
	var b []byte
	high, half := 0, false
	for l.at < len(l.data) {
		c := l.data[l.at]
		l.at++
		if c == '>' {
			break
		}
		d := digit(c)
		switch {
		case d < 0:
		case half:
			b, half = append(b, byte(high<<4|d)), false
		default:
			high, half = d, true
		}
	}
	if half {
		b = append(b, byte(high<<4))
	}
	return string(b)
}

// name reads a name, in which #41 is A.
func (l *pdfLexer) name() pdfName {
	var b []byte
	for l.at < len(l.data) && !isDelimiter(l.data[l.at]) {
		c := l.data[l.at]
		l.at++
		if c == '#' && l.at+1 < len(l.data) && digit(l.data[l.at]) >= 0 && digit(l.data[l.at+1]) >= 0 {
			c = byte(digit(l.data[l.at])<<4 | digit(l.data[l.at+1]))
			l.at += 2
		}
		b = append(b, c)
	}
	return pdfName(b)
}
