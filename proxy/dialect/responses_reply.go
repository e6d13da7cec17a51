package dialect

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/tidwall/gjson"

	"github.com/remora-proxy/remora/proxy/sse"
)

// Reply implements Dialect. A response that is queued, cancelled or failed has
// no finish reason.
func (Responses) Reply(body []byte) (Reply, error) {
	var r responsesReply
	if err := r.response(body); err != nil {
		return Reply{}, err
	}
	return r.finish(), nil
}

// ReplyStream implements Dialect.
func (d Responses) ReplyStream(body []byte) (Reply, error) {
	return d.ReplyEvents(func(yield func([]byte) bool) {
		for event := range sse.Events(body) {
			if len(event.Data) > 0 && !bytes.HasPrefix(event.Data, []byte("[DONE]")) && !yield(event.Data) {
				return
			}
		}
	})
}

// ReplyEvents reads the events of one response, JSON objects with a type: the
// data of server-sent events, or the frames of a WebSocket.
func (Responses) ReplyEvents(events iter.Seq[[]byte]) (Reply, error) {
	var r responsesReply
	var broken error
	for data := range events {
		if err := r.event(data); err != nil && broken == nil {
			broken = fmt.Errorf("read event: %w", err)
		}
	}
	r.broken = broken != nil
	return r.finish(), broken
}

// ReplyID returns the id of a response from the first bytes of its reply, JSON
// or events; "" if it is not there (yet). The first event may be incomplete: it
// may echo the whole request after the id.
func (Responses) ReplyID(head []byte) string { return replyID(head, "response") }

// replyID returns the id of a reply from its first bytes: of a JSON object, or
// of the object that an event has under the key name.
func replyID(head []byte, name string) string {
	if text := bytes.TrimLeft(head, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		return memberOf(text, "id")
	}
	for line := range bytes.Lines(head) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		s := scanner{b: data}
		s.begin()
		for k := range s.members {
			if string(data[k.start:k.end]) == name {
				return memberOf(data[s.i:], "id")
			}
			s.skip()
		}
	}
	return ""
}

// responsesReply collects a reply from one object or from many events.
type responsesReply struct {
	reply   Reply
	text    []byte
	deltas  []byte // of streams that never send whole items
	items   int    // output items that were added
	refused bool
	broken  bool // an event is not JSON
}

// finish returns the collected reply. A refusal has no text, a failed reply no
// finish reason.
func (r *responsesReply) finish() Reply {
	reply := r.reply
	if reply.Text = withoutThinking(string(r.text)); r.items == 0 {
		reply.Text = withoutThinking(string(r.deltas))
	}
	switch {
	case r.broken, reply.Failed:
		reply.Finish = ""
	case reply.Calls && reply.Finish == "stop":
		reply.Finish = "tool_calls"
	}
	if r.refused {
		reply.Text = ""
	}
	return reply
}

func (r *responsesReply) event(data []byte) error {
	s := scanner{b: data}
	s.begin()
	var kind, delta string
	var response, item span
	for k := range s.members {
		switch string(data[k.start:k.end]) {
		case "type":
			kind = s.str()
		case "response":
			response = s.skip()
		case "item":
			item = s.skip()
		case "delta":
			delta = s.str()
		default:
			s.skip()
		}
	}
	s.end()
	if s.err != nil {
		return s.err
	}
	switch kind {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		r.reply.Ended = true
		done := *r
		done.text, done.items = nil, 0
		if err := done.response(data[response.start:response.end]); err != nil {
			return err
		}
		if done.items == 0 { // some servers end with a summary
			done.text, done.items = r.text, r.items
		}
		*r = done
	case "response.created", "response.in_progress", "response.queued":
		v := gjson.ParseBytes(data[response.start:response.end])
		r.reply.ID, r.reply.Model = stringOf(v.Get("id")), stringOf(v.Get("model"))
	case "response.output_item.done":
		r.item(gjson.ParseBytes(data[item.start:item.end]))
	case "response.output_text.delta":
		r.deltas = append(r.deltas, delta...)
	case "error":
		r.reply.Failed = true
	}
	return nil
}

// response adds a response object.
func (r *responsesReply) response(object []byte) error {
	s := scanner{b: object}
	s.begin()
	var status, reason string
	for k := range s.members {
		switch string(object[k.start:k.end]) {
		case "id":
			r.reply.ID = s.str()
		case "model":
			r.reply.Model = s.str()
		case "status":
			status = s.str()
		case "output":
			s.gjson().ForEach(func(_, item gjson.Result) bool {
				r.item(item)
				return true
			})
		case "usage":
			if v := s.gjson(); v.IsObject() {
				r.reply.Usage = Usage{
					Input: tokens(v.Get("input_tokens")), Output: tokens(v.Get("output_tokens")),
					Cached: tokens(v.Get("input_tokens_details.cached_tokens")),
				}
			}
		case "incomplete_details":
			reason = stringOf(s.gjson().Get("reason"))
		case "error":
			if s.peek() != 'n' { // null
				r.reply.Failed = true
			}
			s.skip()
		default:
			s.skip()
		}
	}
	s.end()
	r.reply.Failed = r.reply.Failed || status == "failed"
	switch {
	case finishReason(status) == "stop", status == "" && r.items > 0:
		r.reply.Finish = "stop"
	case status == "incomplete" && finishReason(reason) == "length":
		r.reply.Finish = "length"
	case status == "incomplete":
		r.reply.Finish = reason
	default:
		r.reply.Finish = ""
	}
	return s.err
}

// item adds an output item. Messages of the commentary phase accompany the work
// and are not part of the answer.
func (r *responsesReply) item(v gjson.Result) {
	if !v.IsObject() {
		return
	}
	r.items++
	kind := stringOf(v.Get("type"))
	if isClientCall(kind) {
		r.reply.addCall(stringOf(v.Get("call_id")))
	}
	if kind != "message" || stringOf(v.Get("phase")) == "commentary" {
		return
	}
	first := true
	v.Get("content").ForEach(func(_, part gjson.Result) bool {
		switch stringOf(part.Get("type")) {
		case "output_text", "text":
			if first && len(r.text) > 0 {
				r.text = append(r.text, "\n\n"...)
			}
			first = false
			r.text = append(r.text, stringOf(part.Get("text"))...)
		case "refusal":
			r.refused = true
		}
		return true
	})
}
