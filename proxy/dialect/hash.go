package dialect

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// digest is a hash over a sequence of hashes: all parts have the same width, so no two sequences are the same bytes.
type digest = xxh3.Uint128

// Tags say what a link of a digest is, so that equal bytes in different places differ.
const (
	tagMessage = 'h' // a = the role's value, b = digest of the content
	tagMember  = 'm' // a = key, b = value
	tagText    = 't' // a = the text of a pure text part, or of string content
	tagPart    = 'p' // a = digest of a part's members, or of a part that is no object
	tagRaw     = 'v' // a = content that is neither string nor array
	tagEnd     = 'e' // no more parts, so that an empty array differs from no content
)

// link extends d.
func link(d digest, tag byte, a, b digest) digest {
	var buf [49]byte
	buf[0] = tag
	binary.LittleEndian.PutUint64(buf[1:], d.Lo)
	binary.LittleEndian.PutUint64(buf[9:], d.Hi)
	binary.LittleEndian.PutUint64(buf[17:], a.Lo)
	binary.LittleEndian.PutUint64(buf[25:], a.Hi)
	binary.LittleEndian.PutUint64(buf[33:], b.Lo)
	binary.LittleEndian.PutUint64(buf[41:], b.Hi)
	return xxh3.Hash128(buf[:])
}

// hashValue hashes the value v that skip has just consumed, without its insignificant whitespace.
func (s *scanner) hashValue(v span) digest {
	if s.err != nil {
		return digest{}
	}
	raw := s.b[v.start:v.end]
	if !s.spaced {
		return xxh3.Hash128(raw)
	}
	return hashCompact(raw)
}

// hashCompact is xxh3.Hash128 of raw as it would be without whitespace outside of strings. raw is valid JSON.
func hashCompact(raw []byte) digest {
	var h xxh3.Hasher
	start := 0
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i, _ = stringEnd(raw, i)
		case ' ', '\n', '\t', '\r':
			h.Write(raw[start:i])
			for i++; i < len(raw) && raw[i] <= ' '; i++ {
			}
			start = i
		default:
			i++
		}
	}
	h.Write(raw[start:])
	return h.Sum128()
}
