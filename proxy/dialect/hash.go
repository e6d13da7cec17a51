package dialect

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// digest is a hash over a sequence of hashes. All parts have the same width, so
// different sequences are different bytes.
type digest = xxh3.Uint128

// Tags tell the links of a digest apart, so that equal bytes in different roles
// differ.
const (
	tagMessage = 'h' // a = the role's value, b = digest of the content
	tagMember  = 'm' // a = key, b = value
	tagText    = 't' // a = the text of a pure text part, or of string content
	tagPart    = 'p' // a = digest of a part's members, or of a part that is not an object
	tagRaw     = 'v' // a = content that is neither a string nor an array
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

// hashValue hashes the value v that skip has just consumed, without its
// insignificant whitespace.
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

// hashCompact is xxh3.Hash128 of raw without the whitespace outside of strings.
// The scanner has accepted raw.
func hashCompact(raw []byte) digest {
	var h xxh3.Hasher
	start := 0
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i = rawStringEnd(raw, i)
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

const cacheMarker = "cache_control"

// hashUnmarked is hashValue without the cache markers inside v: the hash that v
// would have had without them.
func (s *scanner) hashUnmarked(v span) digest {
	if s.err != nil {
		return digest{}
	}
	raw := s.b[v.start:v.end]
	// Searching for a rare first byte is much faster in prose.
	if raw[0] != '{' && raw[0] != '[' || !bytes.Contains(raw, []byte(cacheMarker[len("cache"):])) {
		return s.hashValue(v)
	}
	return hashWithoutMarkers(raw)
}

// hashWithoutMarkers is hashCompact of raw without members named cache_control,
// at any depth. The scanner has accepted raw.
func hashWithoutMarkers(raw []byte) digest {
	var (
		h       xxh3.Hasher
		objects [MaxDepth/64 + 1]uint64 // a bit for each level: set for objects
		depth   int
		comma   bool // precedes the next item, unless that is dropped or closes
		first   = true
		key     bool // a key comes next
	)
	write := func(b []byte) {
		if comma && !first {
			h.Write([]byte{','})
		}
		comma, first = false, false
		h.Write(b)
	}
	for i := 0; i < len(raw); {
		switch c := raw[i]; c {
		case ' ', '\n', '\t', '\r':
			i++
		case '{', '[':
			write(raw[i : i+1])
			depth++
			word, bit := &objects[depth/64], uint64(1)<<(depth%64)
			*word &^= bit
			if c == '{' {
				*word |= bit
			}
			first, key = true, c == '{'
			i++
		case '}', ']':
			comma, first, key = false, false, false
			h.Write(raw[i : i+1])
			depth--
			i++
		case ',':
			comma = true
			key = objects[depth/64]&(1<<(depth%64)) != 0
			i++
		case ':':
			h.Write(raw[i : i+1])
			i++
		default:
			s := scanner{b: raw, i: i, unchecked: true}
			v := s.skip()
			i = v.end
			if key && string(raw[v.start+1:v.end-1]) == cacheMarker {
				for i < len(raw) && raw[i] != ':' {
					i++
				}
				s.i = i + 1
				s.space()
				i = s.skip().end
				comma, key = false, false
				continue
			}
			key = false
			write(raw[v.start:v.end])
		}
	}
	return h.Sum128()
}
