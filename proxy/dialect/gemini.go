package dialect

import (
	"bytes"

	"github.com/zeebo/xxh3"
)

// Gemini is Google's generateContent API (POST
// .../models/{model}:generateContent and :streamGenerateContent) at AI Studio
// and Vertex. Its requests name their model in the path. Keys may be in
// camelCase or snake_case.
//
// A content is a message, its parts are the blocks. A content without a role is
// the user's.
type Gemini struct{}

var _ Binder = Gemini{}

// Name implements Dialect.
func (Gemini) Name() string { return "gemini" }

// Parse implements Dialect. A user content that only has results of functions
// has [RoleTool].
func (Gemini) Parse(body []byte) (*Request, error) {
	r := newRequestReader(body, geminiParts)
	return r.read(func(k key) {
		switch string(body[k.start:k.end]) {
		case "contents":
			r.messages(nil, (*requestReader).geminiContent)
		case "systemInstruction", "system_instruction":
			r.systemInstruction()
		case "tools":
			r.req.Tools = r.nonEmpty() || r.req.Tools
		case "generationConfig", "generation_config":
			r.generationConfig()
		default:
			r.other(k, "contents", "systemInstruction")
		}
	})
}

// systemInstruction consumes the value of that key, whose parts are the system
// prompt.
func (r *requestReader) systemInstruction() {
	if r.peek() != '{' {
		r.systemPrompt()
		return
	}
	if r.req.systemEnd > 0 {
		r.fail(ErrAmbiguous)
	}
	whole := span{start: r.i}
	var parts span
	for k := range r.members {
		isParts := r.name(k) == "parts" && r.peek() == '['
		if v := r.skip(); isParts {
			parts = v
		}
	}
	if whole.end = r.i; parts.end == 0 {
		parts = whole // to which nothing can be added
	}
	r.req.systemStart, r.req.systemEnd = parts.start, parts.end
}

// generationConfig consumes the value of that key.
func (r *requestReader) generationConfig() {
	if r.peek() != '{' {
		r.skip()
		return
	}
	for k := range r.members {
		switch string(r.b[k.start:k.end]) {
		case "maxOutputTokens", "max_output_tokens":
			r.req.MaxTokens = r.number()
		default:
			r.skip()
		}
	}
}

// geminiContent consumes one content.
func (r *requestReader) geminiContent() (m Message) {
	m.Start = r.i
	var role, content, others digest
	var raw span
	var kinds geminiKinds
	roles, contents := 0, 0
	for k := range r.members {
		name := r.b[k.start:k.end]
		switch string(name) {
		case "role":
			roles++
			raw = r.check()
			role = r.hashValue(raw)
		case "parts":
			contents++
			m.contentStart = r.i
			content = r.geminiParts(&kinds)
			m.contentEnd = r.i
		default:
			if r.mimics(k, "role") || r.mimics(k, "parts") {
				r.fail(ErrAmbiguous)
			}
			v := r.skip()
			others = link(others, tagMember, xxh3.Hash128(name), r.hashValue(v))
		}
		if roles > 1 || contents > 1 {
			r.fail(ErrAmbiguous)
		}
	}
	m.End = r.i
	switch string(r.b[raw.start:raw.end]) {
	case "", `"user"`:
		m.Role = RoleUser
	case `"model"`:
		m.Role = RoleAssistant
	case `"function"`, `"tool"`:
		m.Role = RoleTool
	}
	switch {
	case m.Role == RoleAssistant:
		m.Calls, m.Thinking = kinds.calls, kinds.signed
	case m.Role == RoleUser && kinds.results && !kinds.others:
		m.Role = RoleTool
	case m.Role == RoleUser:
		m.Results = kinds.results
	}
	m.Hash = link(others, tagMessage, role, content)
	return m
}

// geminiKinds records which kinds of parts a content has.
type geminiKinds struct{ calls, results, signed, others bool }

// geminiParts consumes the parts of a content and returns their digest.
func (r *requestReader) geminiParts(kinds *geminiKinds) (parts digest) {
	if r.peek() != '[' {
		kinds.others = true
		return link(parts, tagRaw, r.hashValue(r.skip()), digest{})
	}
	for range r.elements {
		start := r.i
		p := r.geminiPart()
		v := span{start, r.i}
		if r.err != nil {
			break
		}
		switch {
		case p.call:
			kinds.calls = true
		case p.result:
			kinds.results = true
		default:
			kinds.others = true
		}
		kinds.signed = kinds.signed || p.signature.end > 0
		if p.text.end > 0 && p.members == 1 {
			parts = link(parts, tagText, r.hashValue(p.text), digest{})
		} else {
			parts = link(parts, tagPart, hashCompact(r.b[v.start:v.end]), digest{})
		}
	}
	return link(parts, tagEnd, digest{}, digest{})
}

// geminiPart is what a part is. Spans are empty if it has no such member.
type geminiPart struct {
	text, signature span
	call, result    bool
	thought         bool
	members         int
}

// geminiPart consumes one part.
func (s *scanner) geminiPart() (p geminiPart) {
	if s.peek() != '{' {
		s.skip()
		return p
	}
	for k := range s.members {
		p.members++
		v := s.skip()
		if s.err != nil {
			break
		}
		switch s.name(k) {
		case "text":
			if s.b[v.start] == '"' {
				p.text = v
			}
		case "thought":
			p.thought = string(s.b[v.start:v.end]) == "true"
		case "thoughtSignature", "thought_signature":
			p.signature = v
		case "functionCall", "function_call":
			p.call = true
		case "functionResponse", "function_response":
			p.result = true
		}
	}
	return p
}

// Binds implements Binder.
func (Gemini) Binds(body []byte) bool {
	return bytes.Contains(body, []byte(`"thoughtSignature"`)) || bytes.Contains(body, []byte(`"thought_signature"`))
}

var (
	// signaturePhrases occur in refusals of thought signatures, in lower case.
	signaturePhrases = [...]string{
		"thought signature is not valid", "invalid thought signature", "corrupted thought signature",
		"thought_signature is not valid", "invalid thought_signature", "thought signature is invalid", "thought_signature is invalid",
	}
	unsignedPhrases = [...]string{"missing a thought_signature", "missing a `thought_signature`", "missing thought_signature"}
)

// BoundRefusal implements Binder. Google does not say which signature it
// refused.
func (Gemini) BoundRefusal(status int, body []byte) BoundRefusal {
	switch {
	case status != 400:
		return BoundRefusal{}
	case errorContains(body, unsignedPhrases[:]), errorContains(body, signaturePhrases[:]):
		return BoundRefusal{Changed: true, Message: -1}
	}
	return BoundRefusal{}
}

// unsigned replaces a signature. Google documents it for parts that another
// model has made, or that have lost theirs.
const unsigned = `"skip_thought_signature_validator"`

// Unbind implements Binder. It replaces the signatures, without which the
// server would refuse calls of functions.
func (Gemini) Unbind(req *Request, first, last int) (cuts []Insertion, through int) {
	through = -1
	for i := max(first, 0); i <= min(last, len(req.Messages)-1); i++ {
		m := &req.Messages[i]
		if !m.Thinking {
			continue
		}
		through = i
		s := scanner{b: req.Body, i: m.contentStart, unchecked: true}
		for range s.elements {
			if p := s.geminiPart(); p.signature.end > 0 {
				cuts = append(cuts, Insertion{At: p.signature.start, Cut: p.signature.end - p.signature.start, Text: []byte(unsigned)})
			}
		}
	}
	return cuts, through
}

// StopThinking implements Binder: no server needs it.
func (Gemini) StopThinking(*Request) []Insertion { return nil }

// DropBound implements Binder: it can't be asked for.
func (Gemini) DropBound(*Request) (ask []Insertion, header, value string) { return nil, "", "" }
