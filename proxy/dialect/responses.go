package dialect

import (
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"
)

// Responses is OpenAI's Responses API (POST /v1/responses), and that of the servers that speak it. The request object is
// the same in the frames of its WebSocket (response.create), so Parse and Insert take those too.
//
// Input that is a string counts as one user message. Items that are no messages (reasoning, calls and their outputs,
// references, and whatever is to come) are kept and hashed as they stand.
type Responses struct{}

var _ Dialect = Responses{}

// Name implements Dialect.
func (Responses) Name() string { return "responses" }

// Parse implements Dialect. The keys that decide what the conversation is must not stand twice.
func (Responses) Parse(body []byte) (*Request, error) {
	s := scanner{b: body, skims: true, parts: responsesParts}
	req := &Request{Body: body, parts: responsesParts}
	var endUser string
	var previous, conversation, background bool
	once := func(seen *bool) {
		if *seen {
			s.fail(ErrAmbiguous)
		}
		*seen = true
	}
	s.begin()
	for k := range s.members {
		req.first(k)
		switch string(body[k.start:k.end]) {
		case "input":
			if req.arrayEnd > 0 {
				s.fail(ErrAmbiguous)
				break
			}
			s.input(req)
		case "instructions":
			s.systemPrompt(req)
		case "previous_response_id":
			once(&previous)
			req.PreviousID = s.str()
		case "conversation":
			once(&conversation)
			req.Held = s.peek() != 'n' // null
			start := s.i
			if req.Conversation = s.conversation(); req.Conversation == "" && s.i-start > maxID {
				s.fail(ErrMalformed) // it has one, perhaps; without it, all would be one
			}
		case "background":
			once(&background)
			req.Background = s.is("true")
		case "generate":
			req.Warmup = s.is("false")
		case "store":
			req.Unstored = s.is("false")
		case "model":
			req.Model = s.id()
		case "stream":
			req.Stream = s.is("true")
		case "tools":
			req.Tools = s.holdsSomething() || req.Tools
		case "max_output_tokens":
			req.MaxTokens = s.number()
		case "user":
			endUser = s.id()
		case "safety_identifier":
			req.User = s.id()
		case "prompt_cache_key":
			req.CacheKey = s.id()
		case "metadata":
			if id, ok := s.member("user_id"); ok {
				req.MetadataUser = id
			}
		default:
			for _, name := range [...]string{"input", "instructions", "previous_response_id", "conversation", "background"} {
				if s.hides(k, name) {
					s.fail(ErrAmbiguous)
				}
			}
			s.skip()
		}
	}
	s.end()
	if req.User == "" {
		req.User = endUser
	}
	return req.finish(&s)
}

// EventType is the type of an event or of a WebSocket's frame, "" where it tells none.
func (Responses) EventType(frame []byte) string {
	s := scanner{b: frame}
	s.begin()
	for k := range s.members {
		if string(frame[k.start:k.end]) == "type" {
			return s.str()
		}
		s.skip()
	}
	return ""
}

// maxClientMetadata bounds how much of a request's client_metadata is read, in bytes.
const maxClientMetadata = 64 << 10

// ClientMetadata are the strings of a request's client_metadata, as far as they fit into the bound.
func (Responses) ClientMetadata(frame []byte) map[string]string {
	out := map[string]string{}
	s := scanner{b: frame}
	s.begin()
	for k := range s.members {
		if string(frame[k.start:k.end]) != "client_metadata" {
			s.skip()
			continue
		}
		left := maxClientMetadata
		for k := range s.members {
			if s.peek() != '"' {
				s.skip()
				continue
			}
			v := s.check()
			if left -= v.end - k.start; s.err != nil || left < 0 {
				return out
			}
			out[s.name(k)] = s.decoded(v)
		}
	}
	return out
}

// input consumes the value of input. A string is a user message, with the hash of an item that says the same.
func (s *scanner) input(req *Request) {
	switch s.peek() {
	case '"':
		m := Message{Start: s.i, Role: RoleUser, contentStart: s.i}
		m.Hash = link(digest{}, tagMessage, xxh3.Hash128([]byte(`"user"`)), s.content())
		m.End, m.contentEnd = s.i, s.i
		req.Messages = append(req.Messages, m)
		req.arrayStart, req.arrayEnd = m.Start, m.End
	case '[':
		s.messages(req, responsesUsuals, (*scanner).item)
	default:
		v := s.skip()
		req.arrayStart, req.arrayEnd = v.start, v.end
	}
}

// item consumes one input item. That a message says that it is one does not count for its hash.
func (s *scanner) item() Message {
	m := Message{Start: s.i}
	var typ, role span
	var roleHash, content, others digest
	types, roles, contents := 0, 0, 0
	for k := range s.members {
		name := s.b[k.start:k.end]
		switch string(name) {
		case "type":
			types++
			if typ = s.check(); s.escaped(typ) {
				s.fail(ErrAmbiguous)
			}
			if v := s.hashValue(typ); string(s.b[typ.start:typ.end]) != `"message"` {
				others = link(others, tagMember, xxh3.Hash128(name), v)
			}
		case "role":
			roles++
			role = s.check()
			roleHash = s.hashValue(role)
		case "content":
			contents++
			m.contentStart = s.i
			content = s.content()
			m.contentEnd = s.i
		case cacheMarker:
			s.skip()
		default:
			if s.hides(k, "type") || s.hides(k, "role") || s.hides(k, "content") {
				s.fail(ErrAmbiguous)
			}
			v := s.skip()
			others = link(others, tagMember, xxh3.Hash128(name), s.hashUnmarked(v))
		}
		if types > 1 || roles > 1 || contents > 1 {
			s.fail(ErrAmbiguous)
		}
	}
	m.End = s.i
	m.Role, m.Calls = itemRole(s.b[typ.start:typ.end], s.b[role.start:role.end])
	m.Hash = link(others, tagMessage, roleHash, content)
	return m
}

// itemRole is the part that an item of this type and role plays in a conversation. calls: it waits for the client.
func itemRole(typ, role []byte) (r Role, calls bool) {
	if len(typ) == 0 || string(typ) == `"message"` {
		return chatRole(role), false
	}
	if typ[0] != '"' {
		return RoleOther, false
	}
	name := string(typ[1 : len(typ)-1])
	switch {
	case isCall(name):
		return RoleAssistant, true
	case strings.HasSuffix(name, "_output"), name == "mcp_approval_response":
		return RoleTool, false
	case strings.HasSuffix(name, "_call"):
		return RoleAssistant, false
	default:
		return RoleOther, false
	}
}

// isCall says whether an item is a call that the client must answer. Unknown calls count as such.
func isCall(name string) bool {
	switch name {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "tool_search_call":
		return false // the server's own
	case "mcp_approval_request":
		return true
	}
	return strings.HasSuffix(name, "_call")
}

// Insert implements Dialect. A string input becomes an array of two items. System needs no turn.
func (Responses) Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error) {
	if p == System {
		if raw := req.Body[req.systemStart:req.systemEnd]; len(raw) > 0 && raw[0] != '"' {
			return nil, fmt.Errorf("%w: instructions are no text", ErrNoPlace)
		}
		return req.appendSystem("instructions", text)
	}
	if turn < 0 || turn >= len(req.Messages) || req.Messages[turn].Role != RoleUser {
		return nil, fmt.Errorf("%w: message %d is not a user message", ErrNoPlace, turn)
	}
	m := req.Messages[turn]
	switch {
	case p == InUser:
		return req.prependContent(turn, text)
	case p != BeforeUser:
		return nil, fmt.Errorf("%w: unknown placement %d", ErrNoPlace, p)
	case req.Body[m.Start] == '"':
		head := append(req.room(1+quotedLen(text)+itemFrame), '[')
		head = append(messageItem(head, text), `,{"type":"message","role":"user","content":[{"type":"input_text","text":`...)
		return []Insertion{{m.Start, head}, {m.End, []byte(`}]}]`)}}, nil
	default:
		return []Insertion{{m.Start, append(messageItem(req.room(quotedLen(text)+itemFrame), text), ',')}}, nil
	}
}

// messageItem appends a whole user message in the form that every server takes.
func messageItem(b []byte, text string) []byte {
	b = append(b, `{"type":"message","role":"user","content":[`...)
	b = responsesParts.textPart(b, text)
	return append(b, `]}`...)
}
