package dialect

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// requestReader reads a request body. It is a scanner that knows messages,
// content parts and the keys that dialects share.
type requestReader struct {
	scanner
	req     *Request
	endUser string // "user", which counts if there is no safety_identifier
	// compacted is set if the message that was read last has a compaction.
	compacted bool
}

func newRequestReader(body []byte, parts partTypes) *requestReader {
	return &requestReader{scanner: scanner{b: body, unchecked: true}, req: &Request{Body: body, parts: parts}}
}

// read reads the body: member consumes the value of each of its keys.
func (r *requestReader) read(member func(k key)) (*Request, error) {
	r.begin()
	for k := range r.members {
		if r.req.firstKey == 0 {
			r.req.firstKey = k.start - 1
		}
		member(k)
	}
	r.end()
	if r.req.User == "" {
		r.req.User = r.endUser
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case len(r.req.Messages) == 0 && r.req.PreviousID == "" && !r.req.Held:
		return nil, fmt.Errorf("%w: no messages", ErrMalformed)
	}
	if err := r.req.findTurn(); err != nil {
		return nil, err
	}
	return r.req, nil
}

// option consumes the value of a key that only describes the request and means
// the same in every dialect. It reports whether k is such a key. If one is
// duplicated the last one counts, as it does for most servers.
func (r *requestReader) option(k key) bool {
	switch string(r.b[k.start:k.end]) {
	case "model":
		r.req.Model = r.id()
	case "stream":
		r.req.Stream = r.is("true")
	case "tools":
		r.req.Tools = r.nonEmpty() || r.req.Tools
	case "metadata":
		if id, ok := r.member("user_id"); ok {
			r.req.MetadataUser = id
		}
	default:
		return false
	}
	return true
}

// openAIOption is option for the keys of OpenAI's APIs.
func (r *requestReader) openAIOption(k key) bool {
	switch string(r.b[k.start:k.end]) {
	case "user":
		r.endUser = r.id()
	case "safety_identifier":
		r.req.User = r.id()
	case "prompt_cache_key":
		r.req.CacheKey = r.id()
	default:
		return r.option(k)
	}
	return true
}

// other consumes the value of a key that is not read. The body is ambiguous if
// a server might read it as one of the decisive keys.
func (r *requestReader) other(k key, decisive ...string) {
	for _, name := range decisive {
		if r.mimics(k, name) {
			r.fail(ErrAmbiguous)
		}
	}
	r.skip()
}

// systemPrompt consumes the value that holds the system prompt.
func (r *requestReader) systemPrompt() {
	if r.req.systemEnd > 0 {
		r.fail(ErrAmbiguous)
	}
	v := r.skip()
	r.req.systemStart, r.req.systemEnd = v.start, v.end
}

// messages consumes the array of messages. Messages in one of forms are read
// directly, all others with read.
func (r *requestReader) messages(forms []commonForm, read func(*requestReader) Message) {
	req := r.req
	if req.arrayEnd > 0 {
		r.fail(ErrAmbiguous)
		return
	}
	req.arrayStart = r.i
	if len(r.b) < minPooledBody {
		req.Messages = make([]Message, 0, 8)
	} else {
		req.pooled = messagePool.Get().(*[pooledMessages]Message)
		req.Messages = req.pooled[:0]
	}
	for n := range r.elements {
		if n == MaxMessages {
			r.fail(fmt.Errorf("%w: more than %d messages", ErrMalformed, MaxMessages))
			return
		}
		if n == cap(req.Messages) { // expect the remaining messages to be as long as these
			each := (r.i - req.arrayStart) / n
			req.Messages = slices.Grow(req.Messages, min(8+(len(r.b)-r.i)/max(each, 64), 4*n, MaxMessages-n))
		}
		m, ok := r.commonMessage(forms)
		if !ok {
			m = read(r)
		}
		m.Results = m.Results || n > 0 && m.Role == RoleUser && req.Messages[n-1].Role == RoleTool
		if r.compacted {
			req.Compacted, r.compacted = n+1, false
		}
		req.Messages = append(req.Messages, m)
	}
	req.arrayEnd = r.i
}

// messageFields is what message finds besides the Message: the raw values of
// type and role, and what the members and content parts are.
type messageFields struct {
	typ, role span
	toolCalls bool // a non-empty tool_calls or function_call
	parts     partKinds
}

// message consumes one message. Role and content are hashed first, wherever
// they are; all other members with their keys follow in the order of the
// message. With typed, the message has a type: "message" does not count for the
// hash, like no type.
func (r *requestReader) message(typed bool) (m Message, f messageFields) {
	m.Start = r.i
	var role, content, others digest
	types, roles, contents := 0, 0, 0
	for k := range r.members {
		name := r.b[k.start:k.end]
		switch {
		case string(name) == "role":
			roles++
			f.role = r.check()
			role = r.hashValue(f.role)
		case string(name) == "content":
			contents++
			m.contentStart = r.i
			content = r.content(&f.parts)
			m.contentEnd = r.i
			r.compacted = r.compacted || f.parts.compacts
		case string(name) == cacheMarker:
			r.skip()
		case typed && string(name) == "type":
			types++
			if f.typ = r.check(); r.escaped(f.typ) {
				r.fail(ErrAmbiguous)
			}
			if v := r.hashValue(f.typ); string(r.b[f.typ.start:f.typ.end]) != `"message"` {
				others = link(others, tagMember, xxh3.Hash128(name), v)
			}
		default:
			if r.mimics(k, "role") || r.mimics(k, "content") || typed && r.mimics(k, "type") {
				r.fail(ErrAmbiguous)
			}
			v := r.skip()
			others = link(others, tagMember, xxh3.Hash128(name), r.hashUnmarked(v))
			if string(name) == "tool_calls" || string(name) == "function_call" {
				f.toolCalls = f.toolCalls || nonEmpty(r.b[v.start:v.end])
			}
		}
		if types > 1 || roles > 1 || contents > 1 {
			r.fail(ErrAmbiguous)
		}
	}
	m.End = r.i
	m.Role = roleOf(r.b[f.role.start:f.role.end])
	m.Hash = link(others, tagMessage, role, content)
	return m, f
}

// roleOf maps the raw value of a role key.
func roleOf(raw []byte) Role {
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
