package documents

import (
	"encoding/binary"
	"io"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"
)

const (
	maxCharMap  = 4 << 20 // of the stream of a map, inflated
	maxCodeText = 64      // bytes of UTF-16 that one code stands for
)

// charMap maps the codes of a font, which have one to four bytes, to text.
type charMap struct {
	ranges [5][][2]string // of codes, by their length
	text   map[string]string
	added  int // to text, repeated ones too
}

// length returns the length of the first code of a string. Without a range that
// it is in, it is one byte in simple fonts and two in others.
func (m charMap) length(raw string, simple bool) int {
	if simple {
		return 1
	}
	for n := 1; n < len(m.ranges) && n <= len(raw); n++ {
		for _, r := range m.ranges[n] {
			if r[0] <= raw[:n] && raw[:n] <= r[1] {
				return n
			}
		}
	}
	return min(2, len(raw))
}

// maxRanges bounds the ranges of codes of one length.
const maxRanges = 64

// readCharMap reads a map of codes to Unicode. One that is broken is as good as
// what can be read of it.
func readCharMap(stream pdf.Value, spend func(int)) charMap {
	m := charMap{text: map[string]string{}}
	if !readableFilter(stream) {
		return m
	}
	data, _ := io.ReadAll(io.LimitReader(stream.Reader(), maxCharMap))
	spend(len(data))
	l := pdfLexer{data: data, content: true}
	var operands []any
	for {
		before := l.at
		token, ok := l.token()
		if !ok {
			return m
		}
		word, isWord := token.(pdfWord)
		switch {
		case isWord && (word == "[" || word == "<<"):
			l.at = before
			v, _ := l.value(0)
			operands = append(operands, v)
		case !isWord:
			operands = append(operands, token)
		default:
			m.operator(string(word), operands)
			operands = operands[:0]
		}
	}
}

// operator reads the lists that end with an operator.
func (m *charMap) operator(name string, operands []any) {
	switch name {
	case "endcodespacerange":
		for i := 1; i < len(operands); i += 2 {
			low, _ := operands[i-1].(string)
			high, _ := operands[i].(string)
			if n := len(low); n > 0 && n < len(m.ranges) && n == len(high) && len(m.ranges[n]) < maxRanges {
				m.ranges[n] = append(m.ranges[n], [2]string{low, high})
			}
		}
	case "endbfchar":
		for i := 1; i < len(operands); i += 2 {
			if code, ok := operands[i-1].(string); ok {
				m.add(code, operands[i])
			}
		}
	case "endbfrange":
		for i := 2; i < len(operands); i += 3 {
			low, _ := operands[i-2].(string)
			high, _ := operands[i-1].(string)
			m.addRange(low, high, operands[i])
		}
	}
}

// addRange maps the codes of a range: to the elements of a list, or to a string
// whose last character counts up.
func (m *charMap) addRange(low, high string, v any) {
	if low == "" || len(low) != len(high) || len(low) >= len(m.ranges) {
		return
	}
	list, isList := v.([]any)
	s, _ := v.(string)
	from, to := bigEndian(low), bigEndian(high)
	for n := 0; n <= to-from && m.added < maxFontCodes; n++ {
		code := string(binary.BigEndian.AppendUint32(nil, uint32(from+n))[4-len(low):])
		switch {
		case isList && n < len(list):
			m.add(code, list[n])
		case len(s) == 1:
			m.add(code, string([]byte{s[0] + byte(n)}))
		case len(s) > 1:
			last := bigEndian(s[len(s)-2:]) + n
			m.add(code, s[:len(s)-2]+string([]byte{byte(last >> 8), byte(last)}))
		default:
			return
		}
	}
}

func bigEndian(s string) int {
	n := 0
	for _, c := range []byte(s) {
		n = n<<8 | int(c)
	}
	return n
}

// add maps a code to a string of UTF-16.
func (m *charMap) add(code string, v any) {
	s, ok := v.(string)
	if m.added++; !ok || len(s) > maxCodeText || m.added > maxFontCodes {
		return
	}
	units := make([]uint16, 0, len(s)/2)
	for i := 1; i < len(s); i += 2 {
		units = append(units, uint16(s[i-1])<<8|uint16(s[i]))
	}
	if len(s) == 1 {
		units = append(units, uint16(s[0]))
	}
	m.text[code] = string(utf16.Decode(units))
}
