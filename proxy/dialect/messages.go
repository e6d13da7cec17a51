package dialect

import (
	"fmt"

	"github.com/zeebo/xxh3"
)

// Messages is Anthropic's Messages API (POST /v1/messages and /v1/messages/count_tokens), and that of the servers that
// speak it.
//
// Its prompt cache is marked by the client: a block that carries cache_control ends a prefix that is kept, and clients
// move the last mark to each new turn. So marks are no part of a message's hash, and nothing that is inserted depends on
// where they stand.
type Messages struct{}

var _ Dialect = Messages{}

// Name implements Dialect.
func (Messages) Name() string { return "messages" }

// Parse implements Dialect. A user message that only hands over tool results has [RoleTool].
func (Messages) Parse(body []byte) (*Request, error) {
	s := scanner{b: body, skims: true, parts: messagesParts}
	req := &Request{Body: body, parts: messagesParts}
	s.begin()
	for k := range s.members {
		req.first(k)
		switch string(body[k.start:k.end]) {
		case "messages":
			if req.arrayEnd > 0 {
				s.fail(ErrAmbiguous)
				break
			}
			s.messages(req, chatUsuals, (*scanner).blockMessage)
		case "system":
			s.systemPrompt(req)
		case "model":
			req.Model = s.id()
		case "stream":
			req.Stream = s.is("true")
		case "tools":
			req.Tools = s.holdsSomething() || req.Tools
		case "max_tokens":
			req.MaxTokens = s.number()
		case "metadata":
			if id, ok := s.member("user_id"); ok {
				req.MetadataUser = id
			}
		default:
			if s.hides(k, "messages") || s.hides(k, "system") {
				s.fail(ErrAmbiguous)
			}
			s.skip()
		}
	}
	s.end()
	return req.finish(&s)
}

// first notes where the first key of the body stands.
func (r *Request) first(k key) {
	if r.firstKey == 0 {
		r.firstKey = k.start - 1
	}
}

// systemPrompt consumes the value that holds the system prompt.
func (s *scanner) systemPrompt(req *Request) {
	if req.systemEnd > 0 {
		s.fail(ErrAmbiguous)
	}
	v := s.skip()
	req.systemStart, req.systemEnd = v.start, v.end
}

// blockMessage consumes one message. Role and content are hashed first, wherever they stand.
func (s *scanner) blockMessage() Message {
	m := Message{Start: s.i}
	var role, content, others digest
	var kinds blockKinds
	roles, contents := 0, 0
	for k := range s.members {
		name := s.b[k.start:k.end]
		switch string(name) {
		case "role":
			roles++
			v := s.check()
			m.Role = chatRole(s.b[v.start:v.end])
			role = s.hashValue(v)
		case "content":
			contents++
			m.contentStart = s.i
			content = s.blocks(&kinds)
			m.contentEnd = s.i
		case cacheMarker:
			s.skip()
		default:
			if s.hides(k, "role") || s.hides(k, "content") {
				s.fail(ErrAmbiguous)
			}
			v := s.skip()
			others = link(others, tagMember, xxh3.Hash128(name), s.hashUnmarked(v))
		}
		if roles > 1 || contents > 1 {
			s.fail(ErrAmbiguous)
		}
	}
	m.End = s.i
	switch {
	case m.Role == RoleAssistant:
		m.Calls = kinds.calls
	case m.Role == RoleUser && kinds.results && !kinds.others:
		m.Role = RoleTool
	case m.Role == RoleUser:
		m.Results = kinds.results
	}
	m.Hash = link(others, tagMessage, role, content)
	return m
}

// blockKinds says which blocks there are in a message.
type blockKinds struct {
	calls   bool // tool_use: calls that the client must answer; what the server calls itself it answers itself
	results bool // tool_result
	others  bool // neither
}

func (k *blockKinds) add(typ []byte) {
	switch string(typ) {
	case `"tool_use"`:
		k.calls = true
	case `"tool_result"`:
		k.results = true
	default:
		k.others = true
	}
}

// blocks is content that notes what kinds of blocks there are.
func (s *scanner) blocks(kinds *blockKinds) digest {
	if s.peek() != '[' {
		kinds.others = true
		return s.content()
	}
	var parts digest
	for range s.elements {
		parts = s.part(parts)
		kinds.add(s.b[s.kind.start:s.kind.end])
	}
	return link(parts, tagEnd, digest{}, digest{})
}

// Insert implements Dialect. A block is a text block of its own in the turn's message, right before that message's last
// block that is no tool result. There it stands behind the tool results, which must come first, and behind every cache
// mark but one on the last block itself, so that no marked prefix is cut short; and the place does not depend on the
// marks. String content becomes an array of two text blocks, which is what a server makes of it, too.
func (Messages) Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error) {
	if p == System {
		return req.appendSystem("system", text)
	}
	if turn < 0 || turn >= len(req.Messages) || req.Messages[turn].Role != RoleUser {
		return nil, fmt.Errorf("%w: message %d is not a user message", ErrNoPlace, turn)
	}
	m := req.Messages[turn]
	switch {
	case p != BeforeUser && p != InUser:
		return nil, fmt.Errorf("%w: unknown placement %d", ErrNoPlace, p)
	case p == InUser && req.contentKind(turn) == '"':
		return req.prependContent(turn, text)
	case req.contentKind(turn) == '"':
		block := append(req.room(1+quotedLen(text)+partFrame), '[')
		block = append(req.parts.textPart(block, text), `,{"type":"text","text":`...)
		return []Insertion{{m.contentStart, block}, {m.contentEnd, []byte(`}]`)}}, nil
	case req.contentKind(turn) == '[':
		at := req.lastBlock(turn)
		if at < 0 {
			return nil, fmt.Errorf("%w: message %d is empty", ErrNoPlace, turn)
		}
		return []Insertion{{at, append(req.parts.textPart(req.room(quotedLen(text)+partFrame), text), ',')}}, nil
	default:
		return nil, fmt.Errorf("%w: message %d has no text content", ErrNoPlace, turn)
	}
}

// lastBlock is the offset of the last block of message i that is no tool result, -1 if there is none.
func (r *Request) lastBlock(i int) int {
	m, at := r.Messages[i], -1
	s := scanner{b: r.Body, i: m.contentStart, skims: true, parts: r.parts}
	for range s.elements {
		start := s.i
		s.blockType()
		if string(s.b[s.kind.start:s.kind.end]) != `"tool_result"` {
			at = start
		}
	}
	return at
}

// blockType consumes a block and leaves the value of its type in s.kind.
func (s *scanner) blockType() {
	s.kind = span{}
	if s.peek() != '{' {
		s.skip()
		return
	}
	for k := range s.members {
		if v := s.skip(); string(s.b[k.start:k.end]) == "type" {
			s.kind = v
		}
	}
}

// appendSystem puts text after the system prompt, which is the value of the body's key name.
func (r *Request) appendSystem(name, text string) ([]Insertion, error) {
	raw := r.Body[r.systemStart:r.systemEnd]
	switch {
	case len(raw) == 0:
		b := append([]byte{'"'}, name...)
		b = appendQuoted(append(b, `":"`...), text)
		return []Insertion{{r.firstKey, append(b, `",`...)}}, nil
	case raw[0] == '"':
		return []Insertion{{r.systemEnd - 1, appendQuoted(nil, "\n\n"+text)}}, nil
	case raw[0] == '[' && holdsSomething(raw):
		return []Insertion{{r.systemEnd - 1, r.parts.textPart([]byte{','}, text)}}, nil
	default:
		return nil, fmt.Errorf("%w: %s has no text", ErrNoPlace, name)
	}
}
