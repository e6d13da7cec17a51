package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// replyTexts is how many different answers the mock upstream gives in turn.
const replyTexts = 64

// jsonReplySize is the size of a JSON response body.
const jsonReplySize = 1024

// sentMark precedes the time at which an event left the mock upstream, in nanoseconds since the Unix epoch as
// [sentDigits] digits.
const (
	sentMark   = `"sent_ns":`
	sentDigits = 19
)

// streamEnd closes every stream; it goes out with the last event.
const streamEnd = "data: [DONE]\n\n"

// replies are the responses of the mock upstream, built before the first request.
type replies struct {
	json [][]byte // whole responses
	text []string // as it stands in JSON
}

func newReplies() *replies {
	t := newTexts(3)
	r := &replies{}
	for i := range replyTexts {
		head := fmt.Sprintf(`{"id":"chatcmpl-%04d","object":"chat.completion","created":1760000000,"model":"mock",`+
			`"choices":[{"index":0,"message":{"role":"assistant","content":"`, i)
		tail := `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":250,"completion_tokens":180,"total_tokens":430}}`
		text := padText(jsonReplySize-len(head)-len(tail), t)
		body := head + text + tail
		r.text = append(r.text, text)
		r.json = append(r.json, []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+
			strconv.Itoa(len(body))+"\r\n\r\n"+body))
	}
	return r
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

// eventTemplate is one event of a stream with zeros for the time that it is sent at.
func (r *replies) eventTemplate(reply, event, events int) string {
	words := strings.Fields(r.text[reply%replyTexts])
	delta := words[event%len(words)] + " " + words[(event+1)%len(words)] + " "
	finish := "null"
	if event == events-1 {
		finish = `"stop"`
	}
	return fmt.Sprintf(`data: {"id":"chatcmpl-%04d","object":"chat.completion.chunk","created":1760000000,"model":"mock",`+
		`"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":%s}],%s%0*d}`+"\n\n",
		reply%replyTexts, delta, finish, sentMark, sentDigits, 0)
}

// streamScript is a stream whose events only lack the time: chunk i of chunks is written at once, the first with the
// head of the response, the last with the end of the stream.
type streamScript struct {
	chunks [][]byte
	sent   []int // offset of the digits in each chunk
}

func (r *replies) stream(reply, events int) streamScript {
	var s streamScript
	for i := range events {
		data := r.eventTemplate(reply, i, events)
		if i == events-1 {
			data += streamEnd
		}
		chunk := strconv.FormatInt(int64(len(data)), 16) + "\r\n" + data + "\r\n"
		if i == 0 {
			chunk = streamHead + chunk
		}
		if i == events-1 {
			chunk += "0\r\n\r\n"
		}
		s.chunks = append(s.chunks, []byte(chunk))
		s.sent = append(s.sent, strings.Index(chunk, sentMark)+len(sentMark))
	}
	return s
}

// stampSent writes ns into the digits at the front of b.
func stampSent(b []byte, ns int64) {
	for i := sentDigits - 1; i >= 0; i-- {
		b[i] = byte('0' + ns%10)
		ns /= 10
	}
}

// sentTime reads the time of an event; ok is false where it bears none.
func sentTime(event []byte) (ns int64, ok bool) {
	i := bytes.Index(event, []byte(sentMark))
	if i < 0 || len(event) < i+len(sentMark)+sentDigits {
		return 0, false
	}
	for _, c := range event[i+len(sentMark):][:sentDigits] {
		if c < '0' || c > '9' {
			return 0, false
		}
		ns = ns*10 + int64(c-'0')
	}
	return ns, true
}
