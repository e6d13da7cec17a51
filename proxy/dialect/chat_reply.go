package dialect

import (
	"bytes"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/remora-proxy/remora/proxy/sse"
)

// Reply implements Dialect. It reads the choice with index 0, wherever it is. A
// choice without an index counts by its position, because some servers omit it.
func (Chat) Reply(body []byte) (Reply, error) {
	var r chatReply
	if err := r.read(body, "message"); err != nil {
		return Reply{}, err
	}
	return r.finish(true), nil
}

// ReplyStream implements Dialect. An event that is not JSON leaves a reply that
// is not Final and an error, because part of the text may be missing.
func (Chat) ReplyStream(body []byte) (Reply, error) {
	var (
		r      chatReply
		broken error
	)
	for event := range sse.Events(body) {
		if string(event.Type) == "error" {
			r.reply.Failed = true
		}
		if bytes.HasPrefix(event.Data, []byte("[DONE]")) {
			r.reply.Ended = true
			continue
		}
		if len(event.Data) == 0 {
			continue
		}
		if err := r.read(event.Data, "delta"); err != nil && broken == nil {
			broken = fmt.Errorf("read event: %w", err)
			r.broken = true
		}
	}
	ended := r.reply.Ended
	r.reply.Ended = ended || r.reply.Finish != ""
	return r.finish(ended || r.counted), broken
}

// chatReply collects a reply from one object or from many chunks.
type chatReply struct {
	reply   Reply
	text    []byte
	refused bool
	broken  bool // something is not as it must be
	counted bool // usage was reported behind a text, in a chunk of its own
}

// finish returns the collected reply. A refusal has no text and a failed reply
// no finish reason, so neither is Final. whole means that the reply has come to
// its end, even if it gives no reason.
func (r *chatReply) finish(whole bool) Reply {
	reply := r.reply
	reply.Text = withoutThinking(string(r.text))
	if r.refused {
		reply.Text = ""
	}
	switch {
	case r.broken, r.reply.Failed:
		reply.Finish = ""
	case reply.Finish == "tool_calls":
		reply.Calls = true
	case whole:
		reply.endWithout()
	}
	return reply
}

// read adds a response object. Its choices have their message under the key
// name: message, or delta in chunks.
func (r *chatReply) read(object []byte, name string) error {
	s := scanner{b: object}
	s.begin()
	choices, usage := 0, false
	for k := range s.members {
		switch string(object[k.start:k.end]) {
		case "id":
			s.strOnce(&r.reply.ID)
		case "model":
			s.strOnce(&r.reply.Model)
		case "choices":
			if s.peek() != '[' {
				s.skip()
				break
			}
			for n := range s.elements {
				r.readChoice(&s, n, name)
				choices++
			}
		case "usage":
			if v := s.gjson(); v.IsObject() {
				r.reply.Usage = chatUsage(v)
				usage = true
			}
		case "error":
			v := s.gjson()
			r.reply.Failed = r.reply.Failed || v.IsObject() || stringOf(v) != ""
		case "object":
			r.reply.Failed = s.is(`"error"`) || r.reply.Failed
		default:
			s.skip()
		}
	}
	s.end()
	r.counted = r.counted || usage && choices == 0 && len(r.text) > 0 // some report it with every chunk
	return s.err
}

// readChoice consumes one choice. Its index may follow its message, so the
// message is read last.
func (r *chatReply) readChoice(s *scanner, n int, name string) {
	if s.peek() != '{' {
		s.skip()
		return
	}
	ours := n == 0
	var message span
	var finish string
	for k := range s.members {
		switch string(s.b[k.start:k.end]) {
		case "index":
			if v := s.skip(); string(s.b[v.start:v.end]) != "null" {
				ours = string(s.b[v.start:v.end]) == "0"
			}
		case "finish_reason":
			finish = s.str()
		case name:
			message = s.skip()
		default:
			s.skip()
		}
	}
	if s.err != nil || !ours {
		return
	}
	if finish != "" {
		r.reply.Finish = finishReason(finish)
	}
	if message.end > 0 && s.b[message.start] == '{' {
		r.readMessage(s.b[message.start:message.end])
	}
}

// readMessage adds a message or delta. It is valid JSON but for its keys: an
// invalid one fails the reply. Reasoning has its own keys and is ignored.
func (r *chatReply) readMessage(message []byte) {
	s := scanner{b: message}
	for k := range s.members {
		switch string(message[k.start:k.end]) {
		case "content":
			v := s.skip()
			if s.err == nil && message[v.start] == '"' {
				r.text, _ = appendUnquoted(r.text, message[v.start:v.end]) // checked
			} else {
				text, err := contentText(message, v, chatParts)
				r.text = append(r.text, text...)
				r.broken = r.broken || err != nil
			}
		case "refusal":
			if s.str() != "" {
				r.refused = true
			}
		case "tool_calls", "function_call":
			v := s.skip()
			if calls := message[v.start:v.end]; s.err == nil && nonEmpty(calls) {
				r.reply.Calls = true
				if r.reply.Call == "" {
					r.reply.addCall(stringOf(gjson.GetBytes(calls, "0.id")))
				}
			}
		default:
			s.skip()
		}
	}
	r.broken = r.broken || s.err != nil
}

func chatUsage(v gjson.Result) Usage {
	return Usage{
		Input:  tokens(v.Get("prompt_tokens")),
		Output: tokens(v.Get("completion_tokens")),
		Cached: tokens(v.Get("prompt_tokens_details.cached_tokens")),
	}
}
