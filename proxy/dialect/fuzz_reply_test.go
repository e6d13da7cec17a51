package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func FuzzReply(f *testing.F) {
	for _, body := range goldenInputs(f, "reply") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		reply, err := Chat{}.Reply(body)
		if err == nil && !json.Valid(body) {
			t.Errorf("accepted, but not JSON: %q", body)
		}
		checkReply(t, reply, err, body)
	})
}

func FuzzReplyStream(f *testing.F) {
	for _, body := range goldenInputs(f, "stream") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		reply, err := Chat{}.ReplyStream(body)
		checkReply(t, reply, err, body)
	})
}

func checkReply(t *testing.T, reply Reply, err error, body []byte) {
	t.Helper()
	if err != nil && (reply.Final() || !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooDeep)) {
		t.Errorf("%q: error %v, final %v", body, err, reply.Final())
	}
	if u := reply.Usage; u.Input < 0 || u.Output < 0 || u.Cached < 0 {
		t.Errorf("%q: negative usage %+v", body, u)
	}
	// A byte of invalid UTF-8 becomes three.
	if len(reply.Text) > 3*len(body) {
		t.Errorf("%d bytes of text from a body of %d", len(reply.Text), len(body))
	}
}

// FuzzReplyText: one text, as a JSON body and as a stream cut anywhere between its runes, is the same reply.
func FuzzReplyText(f *testing.F) {
	f.Add("Hello 😀 \"there\"\n", uint8(3))
	f.Add("<think>\nhm</think>\n\nTea.", uint8(1))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		runes := []rune(text)
		text = string(runes)
		quote := func(s string) []byte {
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		body := fmt.Appendf(nil, `{"choices":[{"index":0,"message":{"content":%s},"finish_reason":"stop"}]}`, quote(text))
		var stream []byte
		for piece := range slices.Chunk(runes, int(size)+1) {
			stream = fmt.Appendf(stream, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", quote(string(piece)))
		}
		stream = append(stream, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"...)
		want := Reply{Text: text, Finish: "stop"}
		if strings.HasPrefix(strings.TrimLeft(text, " \n\r\t"), "<think>") {
			_, answer, _ := strings.Cut(text, "</think>")
			want.Text = strings.TrimLeft(answer, " \n\r\t")
		}
		if got, err := (Chat{}).Reply(body); err != nil || got != want {
			t.Errorf("Reply: got %+v, %v, want %+v", got, err, want)
		}
		want.Ended = true
		if got, err := (Chat{}).ReplyStream(stream); err != nil || got != want {
			t.Errorf("ReplyStream: got %+v, %v, want %+v", got, err, want)
		}
	})
}
