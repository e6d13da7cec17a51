package documents

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decode returns bytes as text: UTF-8, or UTF-16 if a byte order mark says so.
// Invalid bytes are replaced, and lines end with \n alone.
func decode(body []byte) string {
	order := byteOrder(body)
	if order == nil {
		return clean(string(bytes.TrimPrefix(body, []byte("\ufeff"))))
	}
	body = body[2:]
	units := make([]uint16, len(body)/2)
	for i := range units {
		units[i] = order.Uint16(body[2*i:])
	}
	return clean(string(utf16.Decode(units)))
}

// byteOrder returns the byte order of UTF-16, or nil if no mark gives one.
func byteOrder(body []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}):
		return binary.LittleEndian
	case bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		return binary.BigEndian
	}
	return nil
}

// clean returns a text as valid UTF-8, its lines ended by \n, without NUL and the
// other control characters that are not white space.
func clean(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if strings.IndexByte(s, '\r') >= 0 {
		s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\f' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
