package dialect

// Chat is the Chat Completions API (POST /v1/chat/completions) of OpenAI and
// the many compatible servers.
type Chat struct{}

var _ Dialect = Chat{}

// Name implements Dialect.
func (Chat) Name() string { return "chat" }

// Parse implements Dialect.
func (Chat) Parse(body []byte) (*Request, error) {
	r := newRequestReader(body, chatParts)
	return r.read(func(k key) {
		switch string(body[k.start:k.end]) {
		case "messages":
			r.messages(chatForms, (*requestReader).chatMessage)
		case "functions":
			r.req.Tools = r.nonEmpty() || r.req.Tools
		case "max_tokens", "max_completion_tokens":
			r.req.MaxTokens = r.number()
		case "conversation":
			r.req.Conversation = r.idOrMember()
		default:
			if !r.openAIOption(k) {
				r.other(k, "messages")
			}
		}
	})
}

// chatMessage consumes one message.
func (r *requestReader) chatMessage() Message {
	m, f := r.message(false)
	m.Calls = f.toolCalls && m.Role == RoleAssistant
	return m
}
