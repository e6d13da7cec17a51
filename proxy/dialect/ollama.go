package dialect

import (
	"bytes"
	"fmt"
)

// Ollama is Ollama's chat API (POST /api/chat): the requests of Chat
// Completions, with its own replies, streamed as one JSON object a line.
type Ollama struct{ Chat }

var _ Dialect = Ollama{}

// Name implements Dialect.
func (Ollama) Name() string { return "ollama" }

// Reply implements Dialect.
func (Ollama) Reply(body []byte) (Reply, error) {
	return ollamaReply([][]byte{body})
}

// ReplyStream implements Dialect.
func (Ollama) ReplyStream(body []byte) (Reply, error) {
	return ollamaReply(bytes.Split(body, []byte{'\n'}))
}

func ollamaReply(objects [][]byte) (Reply, error) {
	var (
		reply Reply
		text  []byte
	)
	for _, object := range objects {
		if object = bytes.Trim(object, " \t\r\n"); len(object) == 0 { // JSON's white space, not Unicode's
			continue
		}
		s := scanner{b: object}
		s.begin()
		v := s.gjson()
		s.end()
		if s.err != nil {
			reply.Finish = ""
			return reply, fmt.Errorf("read line: %w", s.err)
		}
		message := v.Get("message")
		text = append(text, stringOf(message.Get("content"))...)
		reply.Calls = reply.Calls || len(message.Get("tool_calls").Array()) > 0
		if reply.Model == "" {
			reply.Model = stringOf(v.Get("model"))
		}
		if v.Get("done").Bool() {
			reply.Ended = true
			if reply.Finish = finishReason(stringOf(v.Get("done_reason"))); reply.Finish == "" {
				reply.Finish = "stop" // older servers give no reason
			}
			reply.Usage = Usage{Input: tokens(v.Get("prompt_eval_count")), Output: tokens(v.Get("eval_count"))}
		}
		reply.Failed = reply.Failed || v.Get("error").IsObject() || stringOf(v.Get("error")) != ""
	}
	if reply.Failed {
		reply.Finish = ""
	}
	reply.Text = withoutThinking(string(text))
	return reply, nil
}
