package dialect

// Messages is Anthropic's Messages API (POST /v1/messages and
// /v1/messages/count_tokens) and that of compatible servers.
//
// Clients mark its prompt cache: a block with cache_control ends a cached
// prefix, and clients move the last mark to each new turn. Marks are therefore
// not part of a message's hash, and insertions do not depend on them.
type Messages struct{}

var _ Dialect = Messages{}

// Name implements Dialect.
func (Messages) Name() string { return "messages" }

// Parse implements Dialect. A user message that only returns tool results has
// [RoleTool].
func (Messages) Parse(body []byte) (*Request, error) {
	r := newRequestReader(body, messagesParts)
	r.req.Unstored = true // unless it has a thread
	return r.read(func(k key) {
		switch string(body[k.start:k.end]) {
		case "messages":
			r.messages(chatForms, (*requestReader).blockMessage)
		case "system":
			r.systemPrompt()
		case "max_tokens":
			r.req.MaxTokens = r.number()
		case "thinking":
			r.thinking()
		case "thread":
			r.thread()
		case "compaction":
			r.req.Compacts = r.nonEmpty()
		default:
			if !r.option(k) {
				r.other(k, "messages", "system", "thread")
			}
		}
	})
}

// blockMessage consumes one message, whose content consists of blocks.
func (r *requestReader) blockMessage() Message {
	m, f := r.message(false)
	switch {
	case m.Role == RoleAssistant:
		m.Calls, m.Thinking = f.parts.calls, f.parts.thinking
	case m.Role == RoleUser && f.parts.results && !f.parts.others:
		m.Role = RoleTool
	case m.Role == RoleUser:
		m.Results = f.parts.results
	}
	return m
}

// thinking consumes the value of the key that turns thinking on or off.
func (r *requestReader) thinking() {
	start := r.i
	typ, ok := r.member("type")
	r.req.Thinks = ok && typ != "disabled"
	r.req.thinkingStart, r.req.thinkingEnd = start, r.i
}

// thread consumes the value of the key that has the server keep the
// conversation.
func (r *requestReader) thread() {
	if r.req.Threaded {
		r.fail(ErrAmbiguous)
	}
	if r.peek() != '{' {
		r.skip()
		return
	}
	r.req.Threaded, r.req.Unstored = true, false
	for k := range r.members {
		if string(r.b[k.start:k.end]) == "previous_message_id" {
			r.req.PreviousID = r.str()
		} else {
			r.skip()
		}
	}
}
