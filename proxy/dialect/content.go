package dialect

import (
	"math"
	"strings"

	"github.com/zeebo/xxh3"
)

// partTypes says which content parts are text.
type partTypes uint8

const (
	chatParts      partTypes = iota // text
	responsesParts                  // input_text, output_text, text
	messagesParts                   // text; types decide where a block may stand, so they must be plain to see
)

// text says whether raw, the value of a part's type, is that of a text part.
func (t partTypes) text(raw []byte) bool {
	switch string(raw) {
	case `"text"`:
		return true
	case `"input_text"`, `"output_text"`:
		return t == responsesParts
	default:
		return false
	}
}

// name is the type of the text parts that a user sends.
func (t partTypes) name() string {
	if t == responsesParts {
		return `"input_text"`
	}
	return `"text"`
}

// content consumes a message's content and returns its digest. String content counts as one text part, so it hashes like
// an array with that single part.
func (s *scanner) content() digest {
	var parts digest
	switch s.peek() {
	case '"':
		parts = link(parts, tagText, s.hashValue(s.skip()), digest{})
	case '[':
		for range s.elements {
			parts = s.part(parts)
		}
	default:
		parts = link(parts, tagRaw, s.hashValue(s.skip()), digest{})
	}
	return link(parts, tagEnd, digest{}, digest{})
}

// part consumes one content part and extends d by it; s.kind is the value of its type then. A part of a text type with a
// text and nothing else is a text part; cache markers do not count.
func (s *scanner) part(d digest) digest {
	s.kind = span{}
	if s.peek() != '{' {
		return link(d, tagPart, s.hashValue(s.skip()), digest{})
	}
	var (
		types, texts, others int
		text, members        digest
	)
	for k := range s.members {
		name := s.b[k.start:k.end]
		if string(name) == "cache_control" {
			s.skip()
			continue
		}
		if s.parts == messagesParts && string(name) != "type" && s.hides(k, "type") {
			s.fail(ErrAmbiguous)
		}
		v := s.partMember(name)
		if s.err != nil {
			break
		}
		value := s.hashUnmarked(v)
		members = link(members, tagMember, xxh3.Hash128(name), value)
		if string(name) == "type" {
			if s.parts == messagesParts && (s.kind.end > 0 || s.escaped(v)) {
				s.fail(ErrAmbiguous)
			}
			s.kind = v
		}
		switch {
		case string(name) == "type" && s.parts.text(s.b[v.start:v.end]):
			types++
		case string(name) == "text" && s.b[v.start] == '"':
			text = value
			texts++
		default:
			others++
		}
	}
	if types == 1 && texts == 1 && others == 0 {
		return link(d, tagText, text, digest{})
	}
	return link(d, tagPart, members, digest{})
}

// partMember consumes the value of a content part's member. What type the part has must be plain to see.
func (s *scanner) partMember(name []byte) span {
	if string(name) == "type" {
		return s.check()
	}
	return s.skip()
}

// contentText decodes the text of content at v: a string, or an array whose text parts are joined by LF. Parts of other
// types, and whatever else content may be, have none. It fails at keys that aren't UTF-8 and at broken texts, with the text
// up to there.
func contentText(body []byte, v span, types partTypes) (string, error) {
	texts, err := contentPieces(body, v, types, whole, nil)
	if len(texts) == 1 {
		return texts[0], err
	}
	return strings.Join(texts, "\n"), err
}

// whole asks for texts without a bound.
const whole = math.MaxInt

// contentPieces is contentText with its texts apart, and of each at most n bytes, or as many as the last escape adds. A
// single one is put into room, which is empty and may be nil.
func contentPieces(body []byte, v span, types partTypes, n int, room []string) ([]string, error) {
	s := scanner{b: body, i: v.start, skims: true, parts: types}
	if v.start == v.end {
		return nil, nil
	}
	switch s.peek() {
	case '"':
		text, ok := unquoteBegin(body[v.start:v.end], n)
		if !ok {
			s.fail(ErrMalformed)
			return nil, s.err
		}
		return append(room, text), nil
	case '[':
		var texts []string
		for range s.elements {
			if text, ok := s.partText(n); ok {
				texts = append(texts, text)
			}
		}
		return texts, s.err
	default:
		return nil, nil
	}
}

// partText consumes one content part and returns the beginning of its text, of n bytes, if it is a text part.
func (s *scanner) partText(n int) (string, bool) {
	if s.peek() != '{' {
		s.skip()
		return "", false
	}
	var typ, text span // the last ones count, as they do for most servers
	for k := range s.members {
		v := s.skip()
		switch s.name(k) {
		case "type":
			typ = v
		case "text":
			text = v
		}
	}
	if s.err != nil || !s.parts.text(s.b[typ.start:typ.end]) || text.end == 0 || s.b[text.start] != '"' {
		return "", false
	}
	begin, ok := unquoteBegin(s.b[text.start:text.end], n)
	if !ok {
		s.fail(ErrMalformed)
	}
	return begin, ok
}
