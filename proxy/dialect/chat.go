package dialect

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/zeebo/xxh3"
)

// Chat is the Chat Completions API (POST /v1/chat/completions) of OpenAI and the many servers that speak it.
type Chat struct{}

var _ Dialect = Chat{}

// Name implements Dialect.
func (Chat) Name() string { return "chat" }

// Parse implements Dialect. Where a key that only describes the request (model, user, ...) stands twice, the last one
// counts, as it does for most servers.
func (Chat) Parse(body []byte) (*Request, error) {
	s := scanner{b: body, skims: true}
	req := &Request{Body: body}
	var endUser string // "user", which gives way to safety_identifier
	s.begin()
	for k := range s.members {
		switch string(body[k.start:k.end]) {
		case "messages":
			if req.arrayEnd > 0 {
				s.fail(ErrAmbiguous)
				break
			}
			s.messages(req, chatUsuals, (*scanner).chatMessage)
		case "model":
			req.Model = s.id()
		case "stream":
			req.Stream = s.is("true")
		case "tools", "functions":
			req.Tools = s.holdsSomething() || req.Tools
		case "max_tokens", "max_completion_tokens":
			req.MaxTokens = s.number()
		case "user":
			endUser = s.id()
		case "safety_identifier":
			req.User = s.id()
		case "prompt_cache_key":
			req.CacheKey = s.id()
		case "conversation":
			req.Conversation = s.conversation()
		case "metadata":
			if id, ok := s.member("user_id"); ok {
				req.MetadataUser = id
			}
		default:
			if s.hides(k, "messages") {
				s.fail(ErrAmbiguous)
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

// finish ends Parse.
func (r *Request) finish(s *scanner) (*Request, error) {
	switch {
	case s.err != nil:
		return nil, s.err
	case len(r.Messages) == 0 && r.PreviousID == "" && !r.Held:
		return nil, fmt.Errorf("%w: no messages", ErrMalformed)
	}
	if err := r.settle(); err != nil {
		return nil, err
	}
	return r, nil
}

// messages consumes the array of messages, each of which read consumes, but for those that are written in one of ways.
func (s *scanner) messages(req *Request, ways []usual, read func(*scanner) Message) {
	req.arrayStart = s.i
	if req.lent == nil {
		req.lent = messageRooms.Get().(*[messageRoom]Message)
	}
	req.Messages = req.lent[:0]
	for n := range s.elements {
		if n == MaxMessages {
			s.fail(fmt.Errorf("%w: more than %d messages", ErrMalformed, MaxMessages))
			return
		}
		if n == cap(req.Messages) { // room for as many more as the rest of the body has if they are as long as these
			each := (s.i - req.arrayStart) / n
			req.Messages = slices.Grow(req.Messages, min(8+(len(s.b)-s.i)/max(each, 64), 4*n, MaxMessages-n))
		}
		m, ok := s.usualMessage(ways)
		if !ok {
			m = read(s)
		}
		m.Results = m.Results || n > 0 && m.Role == RoleUser && req.Messages[n-1].Role == RoleTool
		req.Messages = append(req.Messages, m)
	}
	req.arrayEnd = s.i
}

// chatMessage consumes one message. Role and content are hashed first, wherever they stand; all other members with their
// keys in the order of the message.
func (s *scanner) chatMessage() Message {
	m := Message{Start: s.i}
	var role, content, others digest
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
			content = s.content()
			m.contentEnd = s.i
		case "cache_control":
			s.skip()
		default:
			if s.hides(k, "role") || s.hides(k, "content") {
				s.fail(ErrAmbiguous)
			}
			v := s.skip()
			others = link(others, tagMember, xxh3.Hash128(name), s.hashUnmarked(v))
			if string(name) == "tool_calls" || string(name) == "function_call" {
				m.Calls = m.Calls || holdsSomething(s.b[v.start:v.end])
			}
		}
		if roles > 1 || contents > 1 {
			s.fail(ErrAmbiguous)
		}
	}
	m.End = s.i
	m.Calls = m.Calls && m.Role == RoleAssistant
	m.Hash = link(others, tagMessage, role, content)
	return m
}

// chatRole reads the value of a role key.
func chatRole(raw []byte) Role {
	if bytes.IndexByte(raw, '\\') >= 0 && raw[0] == '"' {
		name, _ := unquote(raw) // checked
		raw = []byte(`"` + name + `"`)
	}
	switch string(raw) {
	case `"system"`, `"developer"`:
		return RoleSystem
	case `"user"`:
		return RoleUser
	case `"assistant"`:
		return RoleAssistant
	case `"tool"`, `"function"`:
		return RoleTool
	default:
		return RoleOther
	}
}

// holdsSomething says whether raw is an array with elements or an object with members.
func holdsSomething(raw []byte) bool {
	s := scanner{b: raw, skims: true}
	switch s.peek() {
	case '[':
		for range s.elements {
			return true
		}
	case '{':
		for range s.members {
			return true
		}
	}
	return false
}

// holdsSomething consumes a value and says whether it is an array with elements or an object with members.
func (s *scanner) holdsSomething() bool {
	v := s.skip()
	return s.err == nil && holdsSomething(s.b[v.start:v.end])
}

// is consumes a value and says whether it is written so.
func (s *scanner) is(literal string) bool {
	v := s.skip()
	return string(s.b[v.start:v.end]) == literal
}

// small consumes a value and hands it to gjson. The scanner has checked it, and that it is not too deep.
func (s *scanner) small() gjson.Result {
	v := s.check()
	if s.err != nil {
		return gjson.Result{}
	}
	return gjson.ParseBytes(s.b[v.start:v.end])
}

func stringOf(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}
