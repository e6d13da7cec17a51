package dialect

import (
	"github.com/tidwall/gjson"
)

// Reply is an upstream's answer.
type Reply struct {
	ID    string
	Model string
	Text  string // the final assistant text (of choice 0), without reasoning, tool calls or refusals
	// Finish is the finish reason in the terms of Chat Completions: stop,
	// length, tool_calls, content_filter; see finishReason. "" means that
	// nothing tells that the answer is whole.
	Finish string
	Failed bool   // the upstream reports an error, in place of the answer or in the middle of it
	Calls  bool   // the reply calls tools
	Call   string // the id of the first call, "" if it has none or is longer than 256 bytes
	Ended  bool   // a stream sent its end marker, or its finish reason
	Usage  Usage
}

// Usage is what the upstream billed, in tokens; 0 if it did not report it.
// Input is the total: Cached was read from the prompt cache, Written was
// written to it.
type Usage struct {
	Input, Output, Cached, Written int64
}

// Final reports whether the reply ends a turn with an answer: it stopped
// normally or at the length limit, calls no tools and has text.
func (r Reply) Final() bool {
	return (r.Finish == "stop" || r.Finish == "length") && !r.Calls && r.Text != ""
}

// addCall records a tool call with that id.
func (r *Reply) addCall(id string) {
	r.Calls = true
	if r.Call == "" && len(id) <= 256 {
		r.Call = id
	}
}

// strOnce consumes a value and stores it in to, if it is a string and to is
// empty.
func (s *scanner) strOnce(to *string) {
	if *to != "" {
		s.skip()
		return
	}
	*to = s.str()
}

// stringOf returns the string v, or "" if it is of another type.
func stringOf(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}

// tokens returns the count v, or 0 if it is not a number.
func tokens(v gjson.Result) int64 {
	if v.Type != gjson.Number {
		return 0
	}
	return max(0, v.Int())
}
