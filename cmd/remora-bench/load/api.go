package load

import (
	"bytes"
	"fmt"
	"strings"
)

// api is a dialect that load speaks, as the client and as the mock upstream.
// Texts are given in their JSON form, without the quotes.
type api struct {
	name string // as in -dialect
	path string // whole
	auth string // lines of a request's head, benchKey among them

	// A request body is its model, "stream" if it asks for one, opening,
	// messages with commas between them, closing.
	opening, closing string
	message          func(role string) (before, after string) // around a text

	// An answer is a JSON body, or a stream of timed deltas: begin is sent with
	// the first of them, end with the last. A delta contains the time at which
	// it is sent (sentMark). n distinguishes answers; ids that start with
	// idMark are unique.
	reply func(n int, text string) string
	begin func(n int) string
	delta func(n int, text string, last bool) string
	end   func(n int, text string) string
}

// apis returns all dialects of -dialect. The first is the default, and its
// cells don't name a dialect.
func apis() []api { return []api{chatAPI(), responsesAPI(), messagesAPI()} }

func apiNamed(name string) (api, bool) {
	for _, a := range apis() {
		if a.name == name {
			return a, true
		}
	}
	return api{}, false
}

// apiAt returns the index in apis of the one that a request line asks for, 0 if
// unknown.
func apiAt(apis []api, requestLine []byte) int {
	_, rest, _ := bytes.Cut(requestLine, []byte(" "))
	path, _, _ := bytes.Cut(rest, []byte(" "))
	for i, a := range apis {
		if string(path) == a.path {
			return i
		}
	}
	return 0
}

const (
	benchSystem = "You are a helpful assistant. Answer briefly."
	bearerAuth  = "Authorization: Bearer " + benchKey + "\r\n"
)

// idMark starts ids that the mock upstream never gives twice; sentDigits digits
// follow. Clients continue a Responses conversation by them, so Remora keeps
// each.
const idMark = "resp_"

// timeSlot is the member of an event that stampDigits puts the time into.
var timeSlot = sentMark + strings.Repeat("0", sentDigits)

// idSlot is the same for an id, quoted.
var idSlot = `"` + idMark + strings.Repeat("0", sentDigits) + `"`

// chatAPI is Chat Completions.
func chatAPI() api {
	return api{
		name: "chat", path: "/v1/chat/completions", auth: bearerAuth,
		opening: `,"messages":[{"role":"system","content":"` + benchSystem + `"},`,
		closing: `],"temperature":0.7}`,
		message: func(role string) (string, string) { return `{"role":"` + role + `","content":"`, `"}` },
		reply: func(n int, text string) string {
			return fmt.Sprintf(`{"id":"chatcmpl-%04d","object":"chat.completion","created":1760000000,"model":"mock",`+
				`"choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":250,"completion_tokens":180,"total_tokens":430}}`, n, text)
		},
		begin: func(int) string { return "" },
		delta: func(n int, text string, last bool) string {
			finish := "null"
			if last {
				finish = `"stop"`
			}
			return fmt.Sprintf(`data: {"id":"chatcmpl-%04d","object":"chat.completion.chunk","created":1760000000,"model":"mock",`+
				`"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":%s}],%s}`+"\n\n", n, text, finish, timeSlot)
		},
		end: func(int, string) string { return streamEnd },
	}
}

// responsesAPI is OpenAI's Responses, stored upstream as they are by default.
func responsesAPI() api {
	const usage = `{"input_tokens":250,"input_tokens_details":{"cached_tokens":0},"output_tokens":180,"total_tokens":430}`
	item := func(n int, status, content string) string {
		return fmt.Sprintf(`{"type":"message","id":"msg_%04d","status":"%s","role":"assistant","content":[%s]}`, n, status, content)
	}
	part := func(text string) string { return `{"type":"output_text","text":"` + text + `","annotations":[]}` }
	response := func(status, output, usage string) string {
		return fmt.Sprintf(`{"id":%s,"object":"response","created_at":1760000000,"status":"%s","model":"mock","output":[%s],"usage":%s}`,
			idSlot, status, output, usage)
	}
	return api{
		name: "responses", path: "/v1/responses", auth: bearerAuth,
		opening: `,"instructions":"` + benchSystem + `","input":[`,
		closing: `],"temperature":0.7}`,
		message: func(role string) (string, string) {
			kind := "input_text"
			if role == "assistant" {
				kind = "output_text"
			}
			return `{"type":"message","role":"` + role + `","content":[{"type":"` + kind + `","text":"`, `"}]}`
		},
		reply: func(n int, text string) string {
			return response("completed", item(n, "completed", part(text)), usage)
		},
		begin: func(n int) string {
			return typedEvent("response.created", `"response":`+response("in_progress", "", "null")) +
				typedEvent("response.in_progress", `"response":`+response("in_progress", "", "null")) +
				typedEvent("response.output_item.added", `"output_index":0,"item":`+item(n, "in_progress", "")) +
				typedEvent("response.content_part.added", fmt.Sprintf(`"item_id":"msg_%04d","output_index":0,"content_index":0,"part":%s`, n, part("")))
		},
		delta: func(n int, text string, _ bool) string {
			return typedEvent("response.output_text.delta",
				fmt.Sprintf(`"item_id":"msg_%04d","output_index":0,"content_index":0,"delta":"%s",%s`, n, text, timeSlot))
		},
		end: func(n int, text string) string {
			whole := item(n, "completed", part(text))
			return typedEvent("response.output_text.done", fmt.Sprintf(`"item_id":"msg_%04d","output_index":0,"content_index":0,"text":"%s"`, n, text)) +
				typedEvent("response.content_part.done", fmt.Sprintf(`"item_id":"msg_%04d","output_index":0,"content_index":0,"part":%s`, n, part(text))) +
				typedEvent("response.output_item.done", `"output_index":0,"item":`+whole) +
				typedEvent("response.completed", `"response":`+response("completed", whole, usage))
		},
	}
}

// messagesAPI is Anthropic's Messages, with content in blocks.
func messagesAPI() api {
	const usage = `{"input_tokens":250,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":180}`
	message := func(n int, content, stop string) string {
		return fmt.Sprintf(`{"id":"msg_%04d","type":"message","role":"assistant","model":"mock","content":[%s],"stop_reason":%s,`+
			`"stop_sequence":null,"usage":%s}`, n, content, stop, usage)
	}
	return api{
		name: "messages", path: "/v1/messages",
		auth:    "X-Api-Key: " + benchKey + "\r\nAnthropic-Version: 2023-06-01\r\n",
		opening: `,"max_tokens":1024,"system":[{"type":"text","text":"` + benchSystem + `"}],"messages":[`,
		closing: `],"temperature":0.7}`,
		message: func(role string) (string, string) {
			return `{"role":"` + role + `","content":[{"type":"text","text":"`, `"}]}`
		},
		reply: func(n int, text string) string {
			return message(n, `{"type":"text","text":"`+text+`"}`, `"end_turn"`)
		},
		begin: func(n int) string {
			return typedEvent("message_start", `"message":`+message(n, "", "null")) +
				typedEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`) +
				"event: ping\ndata: {\"type\":\"ping\"}\n\n"
		},
		delta: func(_ int, text string, _ bool) string {
			return typedEvent("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"`+text+`"},`+timeSlot)
		},
		end: func(int, string) string {
			return typedEvent("content_block_stop", `"index":0`) +
				typedEvent("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":180}`) +
				"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
		},
	}
}

// typedEvent returns a server-sent event whose type is also in its data.
func typedEvent(kind, members string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + members + "}\n\n"
}
