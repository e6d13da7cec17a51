package dialect

import (
	"math"
	"strings"

	"github.com/zeebo/xxh3"
)

// partTypes selects which content parts are text.
type partTypes uint8

const (
	chatParts      partTypes = iota // text
	responsesParts                  // input_text, output_text, text
	messagesParts                   // text; types decide where a block may go, so they must be unambiguous
	geminiParts                     // parts with a text, which have no type
)

// isText reports whether raw, the value of a part's type, is that of a text
// part.
func (t partTypes) isText(raw []byte) bool {
	switch string(raw) {
	case `"text"`:
		return true
	case `"input_text"`, `"output_text"`:
		return t == responsesParts
	default:
		return false
	}
}

// userText returns the type of a user's text parts, in quotes.
func (t partTypes) userText() string {
	if t == responsesParts {
		return `"input_text"`
	}
	return `"text"`
}

// partKinds records which kinds of parts a content has, by their types in the
// Messages API.
type partKinds struct {
	calls    bool // tool_use: calls that the client must answer, unlike the server's own
	results  bool // tool_result
	thinking bool // thinking, redacted_thinking
	compacts bool // compaction: stands for all that was before it
	others   bool // none of these
}

func (k *partKinds) add(typ []byte) {
	switch string(typ) {
	case `"tool_use"`:
		k.calls = true
	case `"tool_result"`:
		k.results = true
	case `"thinking"`, `"redacted_thinking"`:
		k.thinking = true
	case `"compaction"`:
		k.compacts, k.others = true, true
	default:
		k.others = true
	}
}

// content consumes a message's content, records its parts in kinds and returns
// its digest. String content counts as one text part.
func (r *requestReader) content(kinds *partKinds) digest {
	var parts digest
	switch r.peek() {
	case '"':
		kinds.others = true
		parts = link(parts, tagText, r.hashValue(r.skip()), digest{})
	case '[':
		for range r.elements {
			var typ span
			parts, typ = r.part(parts)
			kinds.add(r.b[typ.start:typ.end])
		}
	default:
		kinds.others = true
		parts = link(parts, tagRaw, r.hashValue(r.skip()), digest{})
	}
	return link(parts, tagEnd, digest{}, digest{})
}

// part consumes one content part, extends d by it and returns the value of its
// type. A part of a text type with a text and nothing else is a text part;
// cache markers do not count.
func (r *requestReader) part(d digest) (_ digest, typ span) {
	if r.peek() != '{' {
		return link(d, tagPart, r.hashValue(r.skip()), digest{}), typ
	}
	var (
		types, texts, others int
		text, members        digest
	)
	strict := r.req.parts == messagesParts
	for k := range r.members {
		name := r.b[k.start:k.end]
		if string(name) == cacheMarker {
			r.skip()
			continue
		}
		isType := string(name) == "type"
		if strict && !isType && r.mimics(k, "type") {
			r.fail(ErrAmbiguous)
		}
		var v span
		if isType {
			v = r.check()
		} else {
			v = r.skip()
		}
		if r.err != nil {
			break
		}
		value := r.hashUnmarked(v)
		members = link(members, tagMember, xxh3.Hash128(name), value)
		if isType {
			if strict && (typ.end > 0 || r.escaped(v)) {
				r.fail(ErrAmbiguous)
			}
			typ = v
		}
		switch {
		case isType && r.req.parts.isText(r.b[v.start:v.end]):
			types++
		case string(name) == "text" && r.b[v.start] == '"':
			text = value
			texts++
		default:
			others++
		}
	}
	if types == 1 && texts == 1 && others == 0 {
		return link(d, tagText, text, digest{}), typ
	}
	return link(d, tagPart, members, digest{}), typ
}

// contentText decodes the text of the content at v: a string, or an array whose
// text parts are joined by LF. Other parts and values have none. It fails at
// keys that are not UTF-8 and at malformed texts, and returns the text up to
// there.
func contentText(body []byte, v span, types partTypes) (string, error) {
	texts, err := contentTexts(body, v, types, noLimit, nil)
	if len(texts) == 1 {
		return texts[0], err
	}
	return strings.Join(texts, "\n"), err
}

// noLimit asks contentTexts for whole texts.
const noLimit = math.MaxInt

// contentTexts is contentText with the texts separate, each cut after n bytes
// or the escape that crosses them. A single text is appended to buffer, which
// is empty and may be nil.
func contentTexts(body []byte, v span, types partTypes, n int, buffer []string) ([]string, error) {
	s := scanner{b: body, i: v.start, unchecked: true}
	if v.start == v.end {
		return nil, nil
	}
	switch s.peek() {
	case '"':
		text, ok := unquotePrefix(body[v.start:v.end], n)
		if !ok {
			s.fail(ErrMalformed)
			return nil, s.err
		}
		return append(buffer, text), nil
	case '[':
		var texts []string
		for range s.elements {
			if text, ok := s.partText(types, n); ok {
				texts = append(texts, text)
			}
		}
		return texts, s.err
	default:
		return nil, nil
	}
}

// partText consumes one content part and returns the first n bytes of its text,
// if it is a text part.
func (s *scanner) partText(types partTypes, n int) (string, bool) {
	if s.peek() != '{' {
		s.skip()
		return "", false
	}
	if types == geminiParts {
		return s.geminiText(n)
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
	if s.err != nil || !types.isText(s.b[typ.start:typ.end]) || text.end == 0 || s.b[text.start] != '"' {
		return "", false
	}
	prefix, ok := unquotePrefix(s.b[text.start:text.end], n)
	if !ok {
		s.fail(ErrMalformed)
	}
	return prefix, ok
}

// geminiText is partText for a part of Gemini, whose thoughts have no text.
func (s *scanner) geminiText(n int) (string, bool) {
	p := s.geminiPart()
	if s.err != nil || p.text.end == 0 || p.thought {
		return "", false
	}
	prefix, ok := unquotePrefix(s.b[p.text.start:p.text.end], n)
	if !ok {
		s.fail(ErrMalformed)
	}
	return prefix, ok
}
