package dialect

import (
	"bytes"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/remora-proxy/remora/proxy/sse"
)

// Reply implements Dialect.
func (Messages) Reply(body []byte) (Reply, error) {
	var r messagesReply
	if err := r.message(body); err != nil {
		return Reply{}, err
	}
	r.reply.Text = withoutThinking(string(r.text))
	if !r.reply.Failed {
		r.reply.endWithout()
	}
	return r.reply, nil
}

// ReplyStream implements Dialect. Thinking and tool input have their own deltas
// and are ignored.
func (Messages) ReplyStream(body []byte) (Reply, error) {
	var (
		r      messagesReply
		done   bool
		broken error
	)
	for event := range sse.Events(body) {
		if bytes.HasPrefix(event.Data, []byte("[DONE]")) { // of servers that speak it to everybody
			r.reply.Ended, done = true, true
			continue
		}
		if len(event.Data) == 0 {
			continue
		}
		if err := r.event(event.Data); err != nil && broken == nil {
			broken = fmt.Errorf("read event: %w", err)
		}
	}
	r.reply.Text = withoutThinking(string(r.text))
	r.reply.Ended = r.reply.Ended || r.reply.Finish != ""
	switch {
	case r.reply.Failed, broken != nil:
		r.reply.Finish = ""
	case done || r.stopSeen:
		r.reply.endWithout()
	}
	return r.reply, broken
}

// ReplyID returns the id of a message from the first bytes of its reply, JSON
// or events. It is "" as long as the id is not there.
func (Messages) ReplyID(head []byte) string { return replyID(head, "message") }

// messagesReply collects a reply from one object or from many events.
type messagesReply struct {
	reply    Reply
	text     []byte
	stopSeen bool // a stream sent message_stop
}

// event adds one event of a stream.
func (r *messagesReply) event(data []byte) error {
	s := scanner{b: data}
	s.begin()
	var kind string
	var message, block, delta, usage span
	for k := range s.members {
		switch string(data[k.start:k.end]) {
		case "type":
			kind = s.str()
		case "message":
			message = s.skip()
		case "content_block":
			block = s.skip()
		case "delta":
			delta = s.skip()
		case "usage":
			usage = s.skip()
		default:
			s.skip()
		}
	}
	s.end()
	if s.err != nil {
		return s.err
	}
	part := func(v span) []byte { return data[v.start:v.end] }
	switch kind {
	case "message_start":
		return r.message(part(message))
	case "content_block_start":
		r.block(gjson.ParseBytes(part(block)))
	case "content_block_delta":
		if d := gjson.ParseBytes(part(delta)); stringOf(d.Get("type")) == "text_delta" {
			r.text = append(r.text, stringOf(d.Get("text"))...)
		}
	case "message_delta":
		if reason := stringOf(gjson.GetBytes(part(delta), "stop_reason")); reason != "" {
			r.stopped(reason)
		}
		r.usage(gjson.ParseBytes(part(usage)))
	case "message_stop":
		r.reply.Ended, r.stopSeen = true, true
	case "error":
		r.reply.Failed = true
	}
	return nil
}

// message adds a message object.
func (r *messagesReply) message(object []byte) error {
	s := scanner{b: object}
	s.begin()
	kind := ""
	for k := range s.members {
		switch string(object[k.start:k.end]) {
		case "type":
			kind = s.str()
		case "id":
			s.strOnce(&r.reply.ID)
		case "model":
			s.strOnce(&r.reply.Model)
		case "content":
			s.gjson().ForEach(func(_, b gjson.Result) bool {
				r.block(b)
				return true
			})
		case "stop_reason":
			r.stopped(s.str())
		case "usage":
			r.usage(s.gjson())
		default:
			s.skip()
		}
	}
	s.end()
	if kind == "error" {
		r.reply.Finish, r.reply.Failed = "", true
	}
	return s.err
}

func (r *messagesReply) block(b gjson.Result) {
	if !b.IsObject() {
		return
	}
	switch stringOf(b.Get("type")) {
	case "text":
		r.text = append(r.text, stringOf(b.Get("text"))...)
	case "tool_use":
		r.reply.addCall(stringOf(b.Get("id")))
	}
}

// stopped records why the reply ended. A pause (for tools that the server runs)
// and a refusal do not end a turn.
func (r *messagesReply) stopped(reason string) {
	r.reply.Finish = finishReason(reason)
	r.reply.Calls = r.reply.Calls || r.reply.Finish == "tool_calls"
}

// usage adds what was billed. Input includes what was read from the cache and
// written to it. Later events repeat and complete earlier ones.
func (r *messagesReply) usage(v gjson.Result) {
	if !v.IsObject() {
		return
	}
	u := &r.reply.Usage
	cached, written := tokens(v.Get("cache_read_input_tokens")), tokens(v.Get("cache_creation_input_tokens"))
	if input := tokens(v.Get("input_tokens")) + cached + written; input > 0 {
		u.Input, u.Cached, u.Written = input, cached, written
	}
	if output := tokens(v.Get("output_tokens")); output > 0 {
		u.Output = output
	}
}
