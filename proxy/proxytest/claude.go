package proxytest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Claude is a fake Messages API that binds thinking to what stood before it, as
// Anthropic's does: the signature of a thinking block is a hash of the system
// prompt, the tools and every block before it. A request in which that has
// changed is refused, or the block is dropped. Set the fields before it serves;
// the zero Claude binds and answers "ok". It is safe for concurrent use.
type Claude struct {
	// Answer decides the reply; nil = think, then say ok.
	Answer func(ClaudeRequest) []ClaudeBlock
	// Unbound is an older account: thinking is bound only where the request
	// sets thinking.block_binding.
	Unbound bool
	// Drops makes drop_block the behaviour where the request sets none.
	Drops bool
	// NoControls refuses thinking.block_binding, as Vertex does.
	NoControls bool
	// Text is how a refusal is worded.
	Text BindingText
	// LoopNeedsThinking refuses a request whose open tool loop has no thinking
	// in its assistant message, as older models do.
	LoopNeedsThinking bool
	// AlwaysThinks refuses to turn thinking off.
	AlwaysThinks bool

	mu       sync.Mutex
	requests []ClaudeRequest
	refused  int
	served   int
	threads  map[string]*claudeThread // by the id of their newest message
}

// BindingText is the wording of a refusal.
type BindingText uint8

const (
	BindingPlain   BindingText = iota // what every refusal says
	BindingBeta                       // and that the setting needs a beta header
	BindingSystem                     // and that the system prompt differs
	BindingMissing                    // and that an earlier block is missing
	BindingShort                      // the first sentence only
	BindingLatest                     // the words for the latest assistant message
)

// ClaudeRequest is a request as it arrived.
type ClaudeRequest struct {
	Header   http.Header
	Body     []byte // exact
	Model    string
	Stream   bool
	Thinks   bool // thinking is on
	Messages []ClaudeMessage
	Dropped  []string // the paths of the blocks that were dropped
	Count    bool     // it only counts tokens
}

// ClaudeMessage is one message of a request.
type ClaudeMessage struct {
	Role   string
	Blocks []json.RawMessage
}

// Text is the text of all text blocks, joined by newlines.
func (m ClaudeMessage) Text() string {
	var all []string
	for _, b := range m.Blocks {
		if f := fieldsOf(b); f.Type == "text" {
			all = append(all, f.Text)
		}
	}
	return strings.Join(all, "\n")
}

// ClaudeBlock is one block of a reply: a thought, a text or a call.
type ClaudeBlock struct {
	Thinking string
	Redacted bool // the thought is in a redacted_thinking block
	Text     string
	Call     *Call
}

// claudeThread is a conversation that the server holds.
type claudeThread struct {
	fixed     string // what must stay as it was at create
	before    claudeBody
	answer    json.RawMessage
	continued bool
}

type blockFields struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

func fieldsOf(block json.RawMessage) (f blockFields) {
	_ = json.Unmarshal(block, &f)
	return f
}

// claudeBody is what matters of a request's body.
type claudeBody struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Tools    json.RawMessage `json:"tools"`
	Thinking *struct {
		Type         string `json:"type"`
		BlockBinding *struct {
			Behaviour string `json:"prefix_mismatch_behavior"`
		} `json:"block_binding"`
	} `json:"thinking"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Thread     *struct {
		Type     string `json:"type"`
		Previous string `json:"previous_message_id"`
	} `json:"thread"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

const bindingBeta = "thinking-binding-controls-2026-08-01"

// Requests returns the newest requests, at most DefaultKeep, oldest first.
// Those that were refused are among them.
func (c *Claude) Requests() []ClaudeRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Refused returns how many requests were refused.
func (c *Claude) Refused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Reset forgets the requests and how many were refused, but no thread.
func (c *Claude) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.refused = nil, 0
}

// claudeError is a refusal.
type claudeError struct {
	status        int
	kind, message string
}

func (e *claudeError) Error() string { return e.message }

func invalid(format string, args ...any) error {
	return &claudeError{http.StatusBadRequest, "invalid_request_error", fmt.Sprintf(format, args...)}
}

// ServeHTTP answers POST .../messages and .../messages/count_tokens.
func (c *Claude) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return
	}
	body, req, err := c.read(r, raw)
	c.mu.Lock()
	if len(c.requests) == DefaultKeep {
		c.requests = slices.Delete(c.requests, 0, 1)
	}
	c.requests = append(c.requests, req)
	c.served++
	n := c.served
	c.mu.Unlock()
	if err == nil {
		err = c.check(&body, &req)
	}
	if err == nil && req.Count {
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": len(raw) / 4})
		return
	}
	if err != nil {
		c.refuse(w, err)
		return
	}
	answer := []ClaudeBlock{{Thinking: "Let me think."}, {Text: "ok"}}
	if c.Answer != nil {
		answer = c.Answer(req)
	}
	message := c.sign(body, answer, fmt.Sprintf("msg_%06d", n), req)
	if body.Thread != nil {
		c.hold(r, body, message)
	}
	if body.Stream {
		streamMessage(w, message)
		return
	}
	writeJSON(w, http.StatusOK, message)
}

// read parses a request. A thread that is continued is put in front of it.
func (c *Claude) read(r *http.Request, raw []byte) (body claudeBody, req ClaudeRequest, err error) {
	req = ClaudeRequest{Header: r.Header.Clone(), Body: raw, Count: strings.HasSuffix(r.URL.Path, "/count_tokens")}
	if err := json.Unmarshal(raw, &body); err != nil {
		return body, req, invalid("the body is not a Messages request")
	}
	if body.Thread != nil && body.Thread.Type == "continue" {
		if body, err = c.continued(r, body); err != nil {
			return body, req, err
		}
	}
	req.Model, req.Stream = body.Model, body.Stream
	req.Thinks = body.Thinking != nil && body.Thinking.Type != "disabled"
	for i, m := range body.Messages {
		blocks, err := blocksOf(m.Content)
		if err != nil {
			return body, req, invalid("messages.%d.content: Input should be a valid list", i)
		}
		if len(blocks) == 0 && (m.Role != "assistant" || i < len(body.Messages)-1) {
			return body, req, invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		req.Messages = append(req.Messages, ClaudeMessage{m.Role, blocks})
	}
	return body, req, nil
}

// blocksOf returns the blocks of a content. A string is one text block.
func blocksOf(content json.RawMessage) (blocks []json.RawMessage, err error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []json.RawMessage{encode(map[string]any{"type": "text", "text": text})}, nil
	}
	return blocks, json.Unmarshal(content, &blocks)
}

// check refuses what the API refuses, or drops blocks whose thinking is bound
// to something else.
func (c *Claude) check(body *claudeBody, req *ClaudeRequest) error {
	bound, drops := !c.Unbound, c.Drops
	if t := body.Thinking; t != nil && t.BlockBinding != nil {
		switch {
		case c.NoControls:
			return invalid("thinking.block_binding: Extra inputs are not permitted")
		case !slices.Contains(strings.Split(strings.ReplaceAll(strings.Join(req.Header["Anthropic-Beta"], ","), " ", ""), ","), bindingBeta):
			return invalid("thinking.block_binding: Extra inputs are not permitted")
		}
		bound, drops = true, t.BlockBinding.Behaviour == "drop_block"
	}
	if t := body.Thinking; c.AlwaysThinks && t != nil && t.Type == "disabled" {
		return invalid("thinking.type: \"disabled\" is not supported by this model")
	}
	if err := c.checkLoop(req); err != nil {
		return err
	}
	if !bound {
		return nil
	}
	p := newPrefix(body.System, body.Tools)
	for i := range req.Messages {
		m := &req.Messages[i]
		kept := m.Blocks[:0:0]
		for n, b := range m.Blocks {
			if f := fieldsOf(b); isThinking(f) && f.Signature+f.Data != p.signature() {
				if !drops {
					return c.mismatch(i, n, f.Type, i == lastAssistant(req.Messages))
				}
				req.Dropped = append(req.Dropped, fmt.Sprintf("messages.%d.content.%d", i, n))
				continue
			}
			p.add(m.Role, b)
			kept = append(kept, b)
		}
		m.Blocks = kept
	}
	return nil
}

func isThinking(f blockFields) bool { return f.Type == "thinking" || f.Type == "redacted_thinking" }

func lastAssistant(messages []ClaudeMessage) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == "assistant" {
			return i
		}
	}
	return -1
}

// checkLoop checks the tool loop that is open at the end: each call has its
// result, and a model that needs its thinking finds it.
func (c *Claude) checkLoop(req *ClaudeRequest) error {
	last := len(req.Messages) - 1
	if last < 1 || req.Messages[last].Role != "user" {
		return nil
	}
	results := map[string]bool{}
	for _, b := range req.Messages[last].Blocks {
		if f := fieldsOf(b); f.Type == "tool_result" {
			results[f.ToolUseID] = true
		}
	}
	calls := 0
	for _, b := range req.Messages[last-1].Blocks {
		if f := fieldsOf(b); f.Type == "tool_use" {
			if calls++; !results[f.ID] {
				return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
					"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", last-1, f.ID)
			}
		}
	}
	if calls == 0 || !c.LoopNeedsThinking || !req.Thinks {
		return nil
	}
	// The first assistant message of the turn must begin with a thought.
	first := last - 1
	for first >= 2 && onlyResults(req.Messages[first-1]) {
		first -= 2
	}
	if f := fieldsOf(req.Messages[first].Blocks[0]); !isThinking(f) {
		return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, "+
			"a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). "+
			"We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.", first, f.Type)
	}
	return nil
}

func onlyResults(m ClaudeMessage) bool {
	return m.Role == "user" && !slices.ContainsFunc(m.Blocks, func(b json.RawMessage) bool { return fieldsOf(b).Type != "tool_result" })
}

// mismatch words the refusal of a block.
func (c *Claude) mismatch(message, block int, kind string, latest bool) error {
	at := fmt.Sprintf("messages.%d.content.%d: ", message, block)
	if c.Text == BindingLatest && latest {
		return invalid("%s`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "+
			"These blocks must remain as they were in the original response.", at)
	}
	text := at + "Invalid `signature` in `" + kind + "` block"
	if c.Text == BindingShort {
		return invalid("%s", text)
	}
	text += ". The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
	switch c.Text {
	case BindingBeta:
		text += " That setting requires the `" + bindingBeta + "` value in the `anthropic-beta` header."
	case BindingSystem:
		text += " The `system` prompt differs from the one this block was created with."
	case BindingMissing:
		text += " The `thinking` block that preceded this one when it was created is missing from this request."
	}
	return invalid("%s", text)
}

func (c *Claude) refuse(w http.ResponseWriter, err error) {
	var e *claudeError
	if !errors.As(err, &e) {
		panic(err)
	}
	c.mu.Lock()
	c.refused++
	c.mu.Unlock()
	writeJSON(w, e.status, map[string]any{
		"type": "error", "error": map[string]any{"type": e.kind, "message": e.message}, "request_id": "req_1",
	})
}

// prefix is what a thinking block is bound to.
type prefix struct{ sum [sha256.Size]byte }

func newPrefix(system, tools json.RawMessage) *prefix {
	p := &prefix{}
	blocks, err := blocksOf(system)
	if len(system) > 0 && err == nil {
		for _, b := range blocks {
			p.add("system", b)
		}
	}
	if len(tools) > 0 {
		p.add("tools", tools)
	}
	return p
}

// add extends the prefix by a block, without its cache markers.
func (p *prefix) add(role string, block json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(block))
	d.UseNumber()
	var v any
	_ = d.Decode(&v)
	p.sum = sha256.Sum256(append(append(p.sum[:], role...), encode(unmarked(v))...))
}

func (p *prefix) signature() string { return "EqRB" + base64.StdEncoding.EncodeToString(p.sum[:]) }

// unmarked is v without cache markers, at any depth, and with string contents
// as single text blocks.
func unmarked(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = unmarked(v[i])
		}
	case map[string]any:
		delete(v, "cache_control")
		for k := range v {
			v[k] = unmarked(v[k])
		}
		if text, ok := v["content"].(string); ok && v["type"] == "tool_result" {
			v["content"] = []any{map[string]any{"type": "text", "text": text}}
		}
	}
	return v
}

// sign makes the message of an answer, whose thinking is bound to the request.
func (c *Claude) sign(body claudeBody, answer []ClaudeBlock, id string, req ClaudeRequest) map[string]any {
	p := newPrefix(body.System, body.Tools)
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			p.add(m.Role, b)
		}
	}
	content, reason := []any{}, "end_turn"
	for n, b := range answer {
		var block map[string]any
		switch {
		case b.Redacted && req.Thinks:
			block = map[string]any{"type": "redacted_thinking", "data": p.signature()}
		case b.Thinking != "" && req.Thinks:
			block = map[string]any{"type": "thinking", "thinking": b.Thinking, "signature": p.signature()}
		case b.Thinking != "" || b.Redacted:
			continue
		case b.Call != nil:
			var input any = map[string]any{}
			_ = json.Unmarshal([]byte(b.Call.Arguments), &input)
			block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%s_%d", id, n), "name": b.Call.Name, "input": input}
			reason = "tool_use"
		default:
			block = map[string]any{"type": "text", "text": b.Text}
		}
		p.add("assistant", encode(block))
		content = append(content, block)
	}
	message := map[string]any{
		"id": id, "type": "message", "role": "assistant", "model": body.Model, "content": content,
		"stop_reason": reason, "stop_sequence": nil,
		"usage": map[string]any{
			"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": len(req.Body) / 8, "cache_creation_input_tokens": 20,
		},
	}
	if len(req.Dropped) > 0 {
		var dropped []any
		for _, at := range req.Dropped {
			dropped = append(dropped, map[string]any{"type": "thinking_dropped", "path": at})
		}
		message["input_transformations"] = dropped
	}
	return message
}

// streamMessage sends a message as events.
func streamMessage(w http.ResponseWriter, message map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flusher := http.NewResponseController(w)
	send := func(kind string, data map[string]any) {
		data["type"] = kind
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, encode(data))
		_ = flusher.Flush()
	}
	start := map[string]any{}
	for k, v := range message {
		start[k] = v
	}
	content := message["content"].([]any)
	start["content"], start["stop_reason"] = []any{}, nil
	send("message_start", map[string]any{"message": start})
	for i, b := range content {
		block := b.(map[string]any)
		empty, deltas := map[string]any{"type": block["type"]}, []map[string]any{}
		switch block["type"] {
		case "text":
			empty["text"] = ""
			for word := range strings.SplitAfterSeq(block["text"].(string), " ") {
				deltas = append(deltas, map[string]any{"type": "text_delta", "text": word})
			}
		case "thinking":
			empty["thinking"], empty["signature"] = "", ""
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": block["thinking"]},
				map[string]any{"type": "signature_delta", "signature": block["signature"]})
		case "redacted_thinking":
			empty["data"] = block["data"]
		case "tool_use":
			empty["id"], empty["name"], empty["input"] = block["id"], block["name"], map[string]any{}
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": string(encode(block["input"]))})
		}
		send("content_block_start", map[string]any{"index": i, "content_block": empty})
		for _, d := range deltas {
			send("content_block_delta", map[string]any{"index": i, "delta": d})
		}
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": message["stop_reason"], "stop_sequence": nil}, "usage": message["usage"],
	})
	send("message_stop", map[string]any{})
}

// fixedFields is what a thread keeps from its create: model, thinking, tool
// choice and beta headers.
func fixedFields(r *http.Request, b claudeBody) string {
	betas := strings.Split(strings.ReplaceAll(strings.Join(r.Header["Anthropic-Beta"], ","), " ", ""), ",")
	slices.Sort(betas)
	return string(encode([]any{b.Model, b.Thinking, b.ToolChoice, betas}))
}

// hold keeps the thread that message ends.
func (c *Claude) hold(r *http.Request, body claudeBody, message map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.threads == nil {
		c.threads = map[string]*claudeThread{}
	}
	c.threads[message["id"].(string)] = &claudeThread{fixed: fixedFields(r, body), before: body, answer: encode(message["content"])}
}

// Expire ends all threads, as after five minutes.
func (c *Claude) Expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads = nil
}

// continued returns body behind the thread that it continues.
func (c *Claude) continued(r *http.Request, body claudeBody) (claudeBody, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[body.Thread.Previous]
	switch {
	case t == nil:
		return body, &claudeError{http.StatusNotFound, "not_found_error", "thread_not_found: no thread ends with message " + body.Thread.Previous}
	case len(body.System) > 0 || len(body.Tools) > 0:
		return body, invalid("thread_unsupported_request: system and tools are fixed when a thread is created")
	case t.fixed != fixedFields(r, body):
		return body, invalid("thread_fingerprint_mismatch: the request differs from the one that created the thread")
	case t.continued:
		return body, invalid("thread_already_continued: another request has continued this message")
	}
	t.continued = true
	whole := t.before
	whole.Stream, whole.Thread = body.Stream, body.Thread
	whole.Messages = append(slices.Clone(whole.Messages), struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}{"assistant", t.answer})
	whole.Messages = append(whole.Messages, body.Messages...)
	return whole, nil
}
