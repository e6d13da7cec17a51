package proxytest

import (
	"encoding/json"
	"strings"
)

// created is when every reply was: replies do not depend on the clock.
const created = 1_767_225_600

// completion is a reply on its way to the wire.
type completion struct {
	id, model string
	reply     Reply
	usage     map[string]int
}

func usage(r Recorded, reply Reply) map[string]int {
	in, out := chars(r)/4+1, len(reply.Text)/4+1
	return map[string]int{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

// whole is the JSON body.
func (c completion) whole() []byte {
	message := map[string]any{"role": "assistant", "content": c.reply.Text}
	if len(c.reply.Calls) > 0 {
		message["tool_calls"] = c.calls(false)
		if c.reply.Text == "" {
			message["content"] = nil
		}
	}
	return encode(map[string]any{
		"id": c.id, "object": "chat.completion", "created": created, "model": c.model, "usage": c.usage,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": c.reply.Finish}},
	})
}

// events are the data of the stream's events: the role, the text word by word,
// the calls, the finish reason, the usage where it was asked for, and the end.
func (c completion) events(includeUsage bool) [][]byte {
	events := [][]byte{c.chunk(map[string]any{"role": "assistant", "content": ""}, nil)}
	for word := range strings.SplitAfterSeq(c.reply.Text, " ") {
		if word != "" {
			events = append(events, c.chunk(map[string]any{"content": word}, nil))
		}
	}
	for _, call := range c.calls(true) {
		events = append(events, c.chunk(map[string]any{"tool_calls": []any{call}}, nil))
	}
	events = append(events, c.chunk(map[string]any{}, c.reply.Finish))
	if includeUsage {
		events = append(events, encode(map[string]any{
			"id": c.id, "object": "chat.completion.chunk", "created": created, "model": c.model,
			"choices": []any{}, "usage": c.usage,
		}))
	}
	return append(events, []byte("[DONE]"))
}

func (c completion) chunk(delta map[string]any, finish any) []byte {
	return encode(map[string]any{
		"id": c.id, "object": "chat.completion.chunk", "created": created, "model": c.model,
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

func (c completion) calls(indexed bool) []any {
	var out []any
	for i, call := range c.reply.Calls {
		v := map[string]any{
			"id": call.ID, "type": "function",
			"function": map[string]any{"name": call.Name, "arguments": call.Arguments},
		}
		if indexed {
			v["index"] = i
		}
		out = append(out, v)
	}
	return out
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers always encode
	}
	return b
}
