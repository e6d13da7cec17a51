package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// MemoryCall is what a model has saved with a tool of the kind of Anthropic's
// memory tool: named memory, with a command and a path.
type MemoryCall struct {
	ID   string // of the call
	Path string
	Text string // that it adds
}

// maxMemoryCalls bounds the calls that are read of one message.
const maxMemoryCalls = 16

// MemoryCalls returns what the answer before a tool loop's newest step saved
// with the memory tool. Commands that add nothing are left out, and calls whose
// result is an error.
func MemoryCalls(d Dialect, req *Request) (calls []MemoryCall) {
	failed := map[string]bool{}
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := req.Messages[i]
		raw := gjson.ParseBytes(req.Body[m.Start:m.End])
		switch {
		case m.Role != RoleAssistant:
			raw.Get("content").ForEach(func(_, part gjson.Result) bool {
				if part.Get("is_error").Bool() {
					failed[part.Get("tool_use_id").Str] = true
				}
				return true
			})
			continue
		case d.Name() == (Messages{}).Name():
			raw.Get("content").ForEach(func(_, part gjson.Result) bool {
				if part.Get("type").Str == "tool_use" && part.Get("name").Str == "memory" {
					calls = appendCall(calls, part.Get("id").Str, part.Get("input"))
				}
				return len(calls) < maxMemoryCalls
			})
		case d.Name() == (Chat{}).Name():
			raw.Get("tool_calls").ForEach(func(_, call gjson.Result) bool {
				arguments := call.Get("function.arguments").Str
				if call.Get("function.name").Str == "memory" && gjson.Valid(arguments) && depthOf(arguments) <= MaxDepth {
					calls = appendCall(calls, call.Get("id").Str, gjson.Parse(arguments))
				}
				return len(calls) < maxMemoryCalls
			})
		}
		break
	}
	kept := calls[:0]
	for _, c := range calls {
		if !failed[c.ID] {
			kept = append(kept, c)
		}
	}
	return kept
}

func appendCall(calls []MemoryCall, id string, input gjson.Result) []MemoryCall {
	c := MemoryCall{ID: id, Path: input.Get("path").Str}
	switch input.Get("command").Str {
	case "create":
		c.Text = input.Get("file_text").Str
	case "str_replace":
		c.Text = input.Get("new_str").Str
	case "insert":
		if c.Text = input.Get("insert_text").Str; c.Text == "" {
			c.Text = input.Get("new_str").Str
		}
	}
	if id == "" || strings.TrimSpace(c.Text) == "" {
		return calls
	}
	return append(calls, c)
}

// depthOf returns how deep brackets nest in a text, which need not be JSON: a
// bracket in a string counts, too.
func depthOf(text string) (deepest int) {
	level := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			level++
			deepest = max(deepest, level)
		case '}', ']':
			level--
		}
	}
	return deepest
}
