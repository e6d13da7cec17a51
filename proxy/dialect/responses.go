package dialect

import (
	"strings"

	"github.com/zeebo/xxh3"
)

// Responses is OpenAI's Responses API (POST /v1/responses) and that of
// compatible servers. WebSocket frames (response.create) hold the same request
// object, so Parse and Insert accept them too.
//
// String input counts as one user message. Items that are not messages
// (reasoning, calls and their outputs, references, unknown ones) are kept and
// hashed as they are.
type Responses struct{}

var _ Dialect = Responses{}

// Name implements Dialect.
func (Responses) Name() string { return "responses" }

// Parse implements Dialect. The keys that decide what the conversation is must
// not be duplicated.
func (Responses) Parse(body []byte) (*Request, error) {
	r := newRequestReader(body, responsesParts)
	req := r.req
	var previous, conversation, background bool
	once := func(seen *bool) {
		if *seen {
			r.fail(ErrAmbiguous)
		}
		*seen = true
	}
	return r.read(func(k key) {
		switch string(body[k.start:k.end]) {
		case "input":
			r.input()
		case "instructions":
			r.systemPrompt()
		case "previous_response_id":
			once(&previous)
			req.PreviousID = r.str()
		case "conversation":
			once(&conversation)
			req.Held = r.peek() != 'n' // null
			start := r.i
			if req.Conversation = r.idOrMember(); req.Conversation == "" && r.i-start > maxID {
				r.fail(ErrMalformed) // an id may be too long; without it, conversations would be merged
			}
		case "background":
			once(&background)
			req.Background = r.is("true")
		case "generate":
			req.Warmup = r.is("false")
		case "store":
			req.Unstored = r.is("false")
		case "max_output_tokens":
			req.MaxTokens = r.number()
		default:
			if !r.openAIOption(k) {
				r.other(k, "input", "instructions", "previous_response_id", "conversation", "background")
			}
		}
	})
}

// input consumes the value of input. A string is a user message with the hash
// of an item with the same text.
func (r *requestReader) input() {
	req := r.req
	switch r.peek() {
	case '[':
		r.messages(responsesForms, (*requestReader).item)
		return
	case '"':
		if req.arrayEnd > 0 {
			r.fail(ErrAmbiguous)
			return
		}
		m := Message{Start: r.i, Role: RoleUser, contentStart: r.i}
		m.Hash = link(digest{}, tagMessage, xxh3.Hash128([]byte(`"user"`)), r.content(new(partKinds)))
		m.End, m.contentEnd = r.i, r.i
		req.Messages = append(req.Messages, m)
		req.arrayStart, req.arrayEnd = m.Start, m.End
	default:
		if req.arrayEnd > 0 {
			r.fail(ErrAmbiguous)
			return
		}
		v := r.skip()
		req.arrayStart, req.arrayEnd = v.start, v.end
	}
}

// item consumes one input item.
func (r *requestReader) item() Message {
	m, f := r.message(true)
	typ := r.b[f.typ.start:f.typ.end]
	if len(typ) == 0 || string(typ) == `"message"` {
		return m
	}
	m.Role = RoleOther
	if typ[0] != '"' {
		return m
	}
	name := string(typ[1 : len(typ)-1])
	switch {
	case name == "compaction", name == "compaction_summary":
		r.compacted = true
	case isClientCall(name):
		m.Role, m.Calls = RoleAssistant, true
	case strings.HasSuffix(name, "_output"), name == "mcp_approval_response":
		m.Role = RoleTool
	case strings.HasSuffix(name, "_call"):
		m.Role = RoleAssistant
	}
	return m
}

// isClientCall reports whether an item type is a call that the client must
// answer. Unknown calls count as such.
func isClientCall(name string) bool {
	switch name {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "tool_search_call":
		return false // the server's own
	case "mcp_approval_request":
		return true
	}
	return strings.HasSuffix(name, "_call")
}

// EventType returns the type of an event or a WebSocket frame, "" if it has
// none.
func (Responses) EventType(frame []byte) string {
	return memberOf(frame, "type")
}

// StreamID returns the lane of an event or a WebSocket frame, "" if it has
// none.
func (Responses) StreamID(frame []byte) string {
	return memberOf(frame, "stream_id")
}

// memberOf returns the string member name of the object that b starts with, ""
// if it has none. The end of the object may be missing.
func memberOf(b []byte, name string) string {
	s := scanner{b: b}
	s.begin()
	for k := range s.members {
		if string(b[k.start:k.end]) == name {
			return s.str()
		}
		s.skip()
	}
	return ""
}

// maxClientMetadata limits how much of a request's client_metadata is read, in
// bytes.
const maxClientMetadata = 64 << 10

// ClientMetadata returns the strings of a request's client_metadata, up to
// maxClientMetadata.
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
			out[s.name(k)] = s.decode(v)
		}
	}
	return out
}
