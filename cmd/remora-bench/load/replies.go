package load

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
)

// replyTexts is how many different answers the mock upstream gives in turn.
const replyTexts = 64

// jsonReplySize is the size of a JSON response body.
const jsonReplySize = 1024

// sentMark precedes the time at which an event left the mock upstream, in
// nanoseconds since the Unix epoch as [sentDigits] digits.
const (
	sentMark   = `"sent_ns":`
	sentDigits = 19
)

// streamEnd closes every stream of Chat Completions; it goes out with the last
// event.
const streamEnd = "data: [DONE]\n\n"

// replies are the responses of the mock upstream in one dialect, built before
// the first request.
type replies struct {
	api  api
	json []prebuilt
	text []string // in JSON form
}

// prebuilt is a piece of a response, ready but for the digits at some offsets.
type prebuilt struct {
	raw []byte
	ids []int // of ids that must be unique
}

func newPrebuilt(raw string) prebuilt {
	p := prebuilt{raw: []byte(raw)}
	for at := 0; ; {
		i := strings.Index(raw[at:], idSlot)
		if i < 0 {
			return p
		}
		p.ids = append(p.ids, at+i+len(`"`+idMark))
		at += i + len(idSlot)
	}
}

// stamped returns p with id in its places; buf is used where there are any.
func (p prebuilt) stamped(buf []byte, id int64) []byte {
	if len(p.ids) == 0 {
		return p.raw
	}
	return p.copied(buf, id)
}

// copied is p in buf, with id in its places.
func (p prebuilt) copied(buf []byte, id int64) []byte {
	buf = append(buf[:0], p.raw...)
	for _, at := range p.ids {
		stampDigits(buf[at:], id)
	}
	return buf
}

func newReplies(a api) *replies {
	t := prose.New(3)
	r := &replies{api: a}
	for i := range replyTexts {
		text := padText(jsonReplySize-len(a.reply(i, "")), t)
		body := a.reply(i, text)
		r.text = append(r.text, text)
		r.json = append(r.json, newPrebuilt("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+
			strconv.Itoa(len(body))+"\r\n\r\n"+body))
	}
	return r
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

// streamScript is a stream whose events only lack the time, and ids: chunk i of
// chunks is written at once, the first with the head of the response, the last
// with the end of the stream.
type streamScript struct {
	chunks []prebuilt
	sent   []int // offset of the digits of the time in each chunk
}

func (r *replies) stream(reply, events int) streamScript {
	var s streamScript
	var said strings.Builder
	reply %= replyTexts
	words := strings.Fields(r.text[reply])
	for i := range events {
		text := words[i%len(words)] + " " + words[(i+1)%len(words)] + " "
		said.WriteString(text)
		data := r.api.delta(reply, text, i == events-1)
		if i == 0 {
			data = r.api.begin(reply) + data
		}
		if i == events-1 {
			data += r.api.end(reply, said.String())
		}
		chunk := strconv.FormatInt(int64(len(data)), 16) + "\r\n" + data + "\r\n"
		if i == 0 {
			chunk = streamHead + chunk
		}
		if i == events-1 {
			chunk += "0\r\n\r\n"
		}
		s.chunks = append(s.chunks, newPrebuilt(chunk))
		s.sent = append(s.sent, strings.Index(chunk, sentMark)+len(sentMark))
	}
	return s
}

// stampDigits writes n into the sentDigits digits at the front of b.
func stampDigits(b []byte, n int64) {
	for i := sentDigits - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
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
