package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/recall/fence"
)

// api is how a test speaks one dialect. Conversations are written as lines,
// "role: text", of which the roles call and result are an assistant's tool call
// and its result, told apart by their text.
type api struct {
	name, path string
	body       func(lines ...string) string
	answer     func(id, text string) string // a final answer as JSON
	calling    string                       // an answer that calls a tool
	stream     func(text string) (contentType, body string)
	pieces     func(t *testing.T, body string) []piece
	marks      bool // moves cache marks from turn to turn, so bytes before them change by the client's own doing
}

// piece is the smallest thing that a request is made of: a line of the
// conversation.
type piece struct {
	line   string // "role: text"
	raw    string // as the provider sees it: cache marks gone, a string and one text block alike
	marked bool   // ends a prefix that the provider is to keep
}

var apis = []api{
	{"chat", "/v1/chat/completions", chat, chatAnswer, chatCalling, chatStream, chatPieces, false},
	{"messages", "/v1/messages?beta=true", messagesBody, messagesAnswer, messagesCalling, messagesStream, messagesPieces, false},
	{"messages marked", "/v1/messages", markedBody, messagesAnswer, messagesCalling, messagesStream, messagesPieces, true},
	{"responses", "/v1/responses", responsesBody, responsesAnswer, responsesCalling, responsesStream, responsesPieces, false},
	{"ollama", "/api/chat", chat, ollamaAnswer, ollamaCalling, ollamaStream, chatPieces, false},
	{"gemini", "/v1beta/models/m:generateContent", geminiBody, geminiAnswer, geminiCalling, geminiStream, geminiPieces, false},
}

// inEach runs a test in every dialect.
func inEach(t *testing.T, test func(t *testing.T, a api)) {
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) { test(t, a) })
	}
}

// rig is newRig that speaks a.
func (a api) rig(t *testing.T, opts ...rigOption) *rig {
	t.Helper()
	r := newRig(t, opts...)
	r.path = a.path
	r.answers(a.replyWith("fine"))
	return r
}

// replyWith answers each request with an id of its own.
func (a api) replyWith(text string) func(received) (int, string, string) {
	return func(got received) (int, string, string) {
		return 200, "application/json", a.answer(fmt.Sprintf("resp_%016x", xxh3.HashString(got.body)), text)
	}
}

// lines shows a body, with blocks shortened to their memories.
func (a api) lines(t *testing.T, body string) []string {
	t.Helper()
	var out []string
	for _, p := range a.pieces(t, body) {
		out = append(out, shorten(p.line))
	}
	return out
}

// grows checks that a request begins with the one before it, as the provider's
// cache sees them.
func (a api) grows(t *testing.T, before, body string) {
	t.Helper()
	if before == "" {
		return
	}
	if prefix := strings.TrimSuffix(before, "]}"); !a.marks && !strings.HasPrefix(body, prefix) {
		t.Fatalf("a request does not begin with the bytes of the one before it\nbefore %s\nthen   %s", before, body)
	}
	then := a.pieces(t, body)
	for i, p := range a.pieces(t, before) {
		if i >= len(then) || then[i].raw != p.raw {
			t.Fatalf("piece %d was %s\nbefore %s\nthen   %s", i, p.raw, before, body)
		}
	}
}

// shorten cuts a block in a line down to its memories.
func shorten(line string) string {
	if !fence.Contains(line) {
		return line
	}
	role, text, _ := strings.Cut(line, ": ")
	var memories []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "- ") {
			memories = append(memories, line[strings.LastIndex(line, ": ")+2:])
		}
	}
	return fmt.Sprintf("%s: [%s]%s", role, strings.Join(memories, "|"), fence.Strip(text))
}

func chat(lines ...string) string { return proxytest.ChatBody(lines...) }

func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// messagesBody writes a Messages body whose texts are strings; system lines
// become the system prompt.
func messagesBody(lines ...string) string {
	system, messages := "", []string(nil)
	for _, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		switch role {
		case "system":
			system = `"system":` + quote(text) + `,`
		case "call":
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"f","input":{}}]}`, text))
		case "result":
			messages = append(messages, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"ok"}]}`, text))
		default:
			messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%s}`, role, quote(text)))
		}
	}
	return `{"model":"m","max_tokens":9,` + system + `"messages":[` + strings.Join(messages, ",") + `]}`
}

// markedBody is messagesBody as agents send it: blocks, with cache marks on the
// system prompt and on the last block of the last message.
func markedBody(lines ...string) string {
	const mark = `"cache_control":{"type":"ephemeral"}`
	system, messages := "", []string(nil)
	for i, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		m := ""
		if i == len(lines)-1 {
			m = "," + mark
		}
		switch role {
		case "system":
			system = fmt.Sprintf(`"system":[{"type":"text","text":%s,%s}],`, quote(text), mark)
		case "call":
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"f","input":{}}]}`, text))
		case "result":
			messages = append(messages, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":[{"type":"text","text":"ok"}]%s}]}`, text, m))
		default:
			messages = append(messages, fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%s%s}]}`, role, quote(text), m))
		}
	}
	return `{"model":"m","max_tokens":9,` + system + `"messages":[` + strings.Join(messages, ",") + `]}`
}

// responsesBody writes a Responses body; system lines become the instructions.
func responsesBody(lines ...string) string {
	system, items := "", []string(nil)
	for _, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		switch role {
		case "system":
			system = `"instructions":` + quote(text) + `,`
		case "call":
			items = append(items, fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"f","arguments":"{}"}`, text))
		case "result":
			items = append(items, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"ok"}`, text))
		case "assistant":
			items = append(items, fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quote(text)))
		default:
			items = append(items, fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":"input_text","text":%s}]}`, role, quote(text)))
		}
	}
	return `{"model":"m","store":false,` + system + `"input":[` + strings.Join(items, ",") + `]}`
}

func chatAnswer(_, text string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`, quote(text))
}

const chatCalling = `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`

func chatStream(text string) (contentType, body string) {
	return "text/event-stream; charset=utf-8", `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":` + quote(text) + `}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
}

func messagesAnswer(_, text string) string {
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":%s}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":2}}`, quote(text))
}

const messagesCalling = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"c","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":2}}`

func messagesStream(text string) (contentType, body string) {
	return "text/event-stream", `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":7,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + quote(text) + `}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`
}

func responsesAnswer(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"object":"response","status":"completed","error":null,"model":"m","output":[{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}],"usage":{"input_tokens":7,"output_tokens":2}}`, id, quote(text))
}

const responsesCalling = `{"id":"resp_call","object":"response","status":"completed","model":"m","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`

func responsesStream(text string) (contentType, body string) {
	return "text/event-stream", `event: response.created
data: {"type":"response.created","response":{"id":"resp_s","status":"in_progress","model":"m","output":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","output_index":0,"delta":` + quote(text) + `}

event: response.completed
data: {"type":"response.completed","response":` + responsesAnswer("resp_s", text) + `}

`
}

func ollamaAnswer(_, text string) string {
	return fmt.Sprintf(`{"model":"m","message":{"role":"assistant","content":%s},"done_reason":"stop","done":true,"prompt_eval_count":7,"eval_count":2}`, quote(text))
}

const ollamaCalling = `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done_reason":"stop","done":true}`

func ollamaStream(text string) (contentType, body string) {
	return "application/x-ndjson", `{"model":"m","message":{"role":"assistant","content":` + quote(text) + `},"done":false}` + "\n" +
		`{"model":"m","message":{"role":"assistant","content":""},"done_reason":"stop","done":true}` + "\n"
}

// object decodes a body.
func object(t *testing.T, body string) map[string]any {
	t.Helper()
	var in map[string]any
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatalf("upstream body is not JSON: %v\n%s", err, body)
	}
	return in
}

// show is one message, block or item as a piece.
func show(role string, v any) piece {
	m, marked := v.(map[string]any), false
	if _, marked = m["cache_control"]; marked {
		m = without(m, "cache_control")
	}
	raw, _ := json.Marshal(map[string]any{"role": role, "v": m})
	text, ok := m["text"].(string)
	switch {
	case m["tool_use_id"] != nil:
		text, role, ok = m["tool_use_id"].(string), "result", true
	case m["type"] == "tool_use":
		text, role, ok = m["id"].(string), "call", true
	case m["type"] == "function_call_output":
		text, role, ok = m["call_id"].(string), "result", true
	case m["type"] == "function_call":
		text, role, ok = m["call_id"].(string), "call", true
	}
	if !ok {
		text = string(raw)
	}
	return piece{role + ": " + text, string(raw), marked}
}

func without(m map[string]any, key string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func chatPieces(t *testing.T, body string) []piece {
	t.Helper()
	var out []piece
	for _, m := range object(t, body)["messages"].([]any) {
		m := m.(map[string]any)
		p := show(fmt.Sprint(m["role"]), m)
		switch content := m["content"].(type) {
		case string:
			p.line = m["role"].(string) + ": " + content
			if id, ok := m["tool_call_id"].(string); ok {
				p.line = "result: " + id
			}
		case nil:
			p.line = "call: " + m["tool_calls"].([]any)[0].(map[string]any)["id"].(string)
		}
		out = append(out, p)
	}
	return out
}

// blocksOf is content as blocks: a string is one.
func blocksOf(content any) []any {
	if text, ok := content.(string); ok {
		return []any{map[string]any{"type": "text", "text": text}}
	}
	blocks, _ := content.([]any)
	return blocks
}

func messagesPieces(t *testing.T, body string) []piece {
	t.Helper()
	var out []piece
	in := object(t, body)
	for _, b := range blocksOf(in["system"]) {
		out = append(out, show("system", b))
	}
	for _, m := range in["messages"].([]any) {
		m := m.(map[string]any)
		for _, b := range blocksOf(m["content"]) {
			out = append(out, show(m["role"].(string), b))
		}
	}
	return out
}

func responsesPieces(t *testing.T, body string) []piece {
	t.Helper()
	var out []piece
	in := object(t, body)
	if text, ok := in["instructions"].(string); ok {
		out = append(out, show("system", map[string]any{"text": text}))
	}
	if text, ok := in["input"].(string); ok {
		return append(out, piece{"user: " + text, text, false})
	}
	for _, item := range in["input"].([]any) {
		item := item.(map[string]any)
		if content, ok := item["content"]; ok {
			for _, part := range blocksOf(content) {
				out = append(out, show(item["role"].(string), part))
			}
			continue
		}
		out = append(out, show("", item))
	}
	return out
}

// geminiBody writes a body of Gemini's; system lines become the instruction.
func geminiBody(lines ...string) string {
	system, contents := "", []string(nil)
	for _, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		switch role {
		case "system":
			system = `"systemInstruction":{"parts":[{"text":` + quote(text) + `}]},`
		case "call":
			contents = append(contents, fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"id":%q,"name":"f","args":{}},"thoughtSignature":"c2ln"}]}`, text))
		case "result":
			contents = append(contents, fmt.Sprintf(`{"role":"user","parts":[{"functionResponse":{"id":%q,"name":"f","response":{"ok":true}}}]}`, text))
		case "assistant":
			contents = append(contents, fmt.Sprintf(`{"role":"model","parts":[{"text":%s}]}`, quote(text)))
		default:
			contents = append(contents, fmt.Sprintf(`{"role":%q,"parts":[{"text":%s}]}`, role, quote(text)))
		}
	}
	return `{"generationConfig":{"maxOutputTokens":9},` + system + `"contents":[` + strings.Join(contents, ",") + `]}`
}

func geminiAnswer(id, text string) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":%s,"thoughtSignature":"c2ln"}]},"finishReason":"STOP","index":0}],`+
		`"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2},"modelVersion":"m","responseId":%q}`, quote(text), id)
}

const geminiCalling = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP","index":0}],"modelVersion":"m"}`

func geminiStream(text string) (contentType, body string) {
	return "text/event-stream", `data: {"candidates":[{"content":{"role":"model","parts":[{"text":` + quote(text) + `}]},"index":0}],"modelVersion":"m"}` + "\r\n\r\n" +
		`data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7},"modelVersion":"m"}` + "\n\n"
}

func geminiPieces(t *testing.T, body string) []piece {
	t.Helper()
	in := object(t, body)
	var out []piece
	add := func(role string, parts any) {
		list, _ := parts.([]any)
		for _, p := range list {
			part := p.(map[string]any)
			raw, _ := json.Marshal(map[string]any{"role": role, "v": part})
			line := role + ": " + fmt.Sprint(part["text"])
			if call, ok := part["functionCall"].(map[string]any); ok {
				line = "call: " + fmt.Sprint(call["id"])
			} else if result, ok := part["functionResponse"].(map[string]any); ok {
				line = "result: " + fmt.Sprint(result["id"])
			}
			out = append(out, piece{line, string(raw), false})
		}
	}
	if system, ok := in["systemInstruction"].(map[string]any); ok {
		add("system", system["parts"])
	}
	for _, c := range in["contents"].([]any) {
		content := c.(map[string]any)
		role := strings.Replace(fmt.Sprint(content["role"]), "model", "assistant", 1)
		add(role, content["parts"])
	}
	return out
}
