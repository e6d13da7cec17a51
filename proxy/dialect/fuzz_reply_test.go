package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func FuzzReply(f *testing.F) {
	for which, d := range dialects {
		for _, body := range goldenInputs(f, d, "reply") {
			f.Add(uint8(which), body)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		d := dialects[int(which)%len(dialects)]
		reply, err := d.Reply(body)
		if err == nil && !json.Valid(body) && len(bytes.Trim(body, " \t\r\n")) > 0 {
			t.Errorf("%s accepted, but not JSON: %q", d.Name(), body)
		}
		checkReply(t, reply, err, body)
	})
}

func FuzzReplyStream(f *testing.F) {
	for which, d := range dialects {
		for _, body := range goldenInputs(f, d, "stream") {
			f.Add(uint8(which), body)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		d := dialects[int(which)%len(dialects)]
		reply, err := d.ReplyStream(body)
		checkReply(t, reply, err, body)
		if d.Name() == "responses" { // found in any prefix of a reply, or not at all
			id := Responses{}.ReplyID(body)
			for n := range min(len(body), 512) {
				if got := (Responses{}).ReplyID(body[:n]); got != "" && got != id {
					t.Errorf("id %q in %d bytes, %q in all", got, n, id)
				}
			}
		}
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

// replyFormats write a final answer, whole and in pieces.
var replyFormats = []struct {
	d      Dialect
	whole  string
	piece  string
	tail   string
	finish string
}{
	{Chat{}, `{"choices":[{"index":0,"message":{"content":%s},"finish_reason":"stop"}]}`,
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", "stop"},
	{Messages{}, `{"type":"message","content":[{"type":"text","text":%s}],"stop_reason":"end_turn"}`,
		"data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n",
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n", "stop"},
	{Responses{}, `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":%s}]}]}`,
		"data: {\"type\":\"response.output_text.delta\",\"delta\":%s}\n\n",
		"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n", "stop"},
	{Ollama{}, `{"message":{"content":%s},"done":true}`,
		"{\"message\":{\"content\":%s},\"done\":false}\n", "{\"message\":{\"content\":\"\"},\"done\":true}\n", "stop"},
}

// FuzzReplyText checks that a text gives the same reply as a JSON body and as a
// stream cut between any of its runes.
func FuzzReplyText(f *testing.F) {
	f.Add("Hello 😀 \"there\"\n", uint8(3))
	f.Add("<think>\nhm</think>\n\nTea.", uint8(1))
	f.Add("Hm, tea.\n</think>\n\nTea.", uint8(2))
	f.Add("It ends with </think> in a line of its own:\n</think>\n", uint8(0))
	f.Add("[THINK]hm[/THINK]Tea.", uint8(0))
	f.Add("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Tea.", uint8(4))
	f.Add("Tags are <t/hink> and\n</think>\n", uint8(0))
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
		for _, format := range replyFormats {
			name := format.d.Name()
			body := fmt.Appendf(nil, format.whole, quote(text))
			var stream []byte
			for piece := range slices.Chunk(runes, int(size)+1) {
				stream = fmt.Appendf(stream, format.piece, quote(string(piece)))
			}
			stream = append(stream, format.tail...)
			want := withoutThinking(text)
			if got, err := format.d.Reply(body); err != nil || got.Text != want || got.Finish != format.finish || got.Calls {
				t.Errorf("%s: Reply: got %+v, %v, want %q", name, got, err, want)
			}
			if got, err := format.d.ReplyStream(stream); err != nil || got.Text != want || got.Finish != format.finish || !got.Ended {
				t.Errorf("%s: ReplyStream: got %+v, %v, want %q", name, got, err, want)
			}
		}
	})
}
