package dialect

import (
	"bytes"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/remora-proxy/remora/proxy/sse"
)

// Reply implements Dialect. A stream without alt=sse is an array of responses.
func (Gemini) Reply(body []byte) (Reply, error) {
	var r geminiReply
	s := scanner{b: body}
	s.begin()
	if s.peek() == '[' {
		for range s.elements {
			r.response(s.gjson())
		}
	} else {
		r.response(s.gjson())
	}
	s.end()
	if s.err != nil {
		return Reply{}, s.err
	}
	return r.finish(true), nil
}

// ReplyStream implements Dialect.
func (Gemini) ReplyStream(body []byte) (Reply, error) {
	var r geminiReply
	var broken error
	done := false
	for event := range sse.Events(body) {
		switch {
		case len(event.Data) == 0:
			continue
		case bytes.HasPrefix(event.Data, []byte("[DONE]")):
			done = true
			continue
		case !isJSON(event.Data):
			r.failed = true
			if broken == nil {
				broken = fmt.Errorf("read event: %w", ErrMalformed)
			}
			continue
		}
		r.reply.Failed = r.reply.Failed || string(event.Type) == "error"
		r.response(gjson.ParseBytes(event.Data))
	}
	r.reply.Ended = done || r.reply.Finish != ""
	return r.finish(done), broken
}

// geminiReply collects a reply from one response or from many.
type geminiReply struct {
	reply  Reply
	text   []byte
	failed bool // something is not JSON, or the prompt was blocked
}

// finish returns the collected reply. whole means that it has come to its end,
// even if it gives no reason.
func (r *geminiReply) finish(whole bool) Reply {
	reply := r.reply
	reply.Text = withoutThinking(string(r.text))
	switch {
	case r.failed, reply.Failed:
		reply.Finish = ""
	case whole:
		reply.endWithout()
	}
	return reply
}

// response adds a response: its candidate 0, without thoughts.
func (r *geminiReply) response(v gjson.Result) {
	if !v.IsObject() {
		r.failed = true
		return
	}
	r.reply.Failed = r.reply.Failed || v.Get("error").Exists()
	r.failed = r.failed || v.Get("promptFeedback.blockReason").Exists()
	if id := stringOf(v.Get("responseId")); r.reply.ID == "" {
		r.reply.ID = id
	}
	if model := stringOf(v.Get("modelVersion")); r.reply.Model == "" {
		r.reply.Model = model
	}
	if u := v.Get("usageMetadata"); u.IsObject() {
		r.reply.Usage = Usage{
			Input: tokens(u.Get("promptTokenCount")), Cached: tokens(u.Get("cachedContentTokenCount")),
			Output: tokens(u.Get("candidatesTokenCount")) + tokens(u.Get("thoughtsTokenCount")),
		}
	}
	v.Get("candidates").ForEach(func(_, c gjson.Result) bool {
		if c.Get("index").Int() != 0 {
			return true
		}
		if reason := stringOf(c.Get("finishReason")); reason != "" && reason != "FINISH_REASON_UNSPECIFIED" {
			r.reply.Finish = finishReason(reason)
		}
		c.Get("content.parts").ForEach(func(_, part gjson.Result) bool {
			switch {
			case part.Get("functionCall").Exists():
				r.reply.addCall(stringOf(part.Get("functionCall.id")))
			case !part.Get("thought").Bool():
				r.text = append(r.text, stringOf(part.Get("text"))...)
			}
			return true
		})
		return false
	})
}
