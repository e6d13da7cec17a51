package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// threadTalk is a client that lets the server keep the conversation, as the
// tool runners of the SDKs do.
type threadTalk struct {
	*boundTalk
	previous string // id of the newest answer, "" = none is kept
	sent     int    // messages that the server has
}

func (b *threadTalk) say(text string) error {
	b.msgs = append(b.msgs, json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, text)))
	for {
		calls, err := b.step()
		if err != nil || len(calls) == 0 {
			return err
		}
		var results []string
		for _, id := range calls {
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"seen"}`, id))
		}
		b.msgs = append(b.msgs, json.RawMessage(`{"role":"user","content":[`+strings.Join(results, ",")+`]}`))
	}
}

// step sends what the server does not have, or everything where it keeps
// nothing any more.
func (b *threadTalk) step() (calls []string, err error) {
	join := func(msgs []json.RawMessage) string {
		var all []string
		for _, m := range msgs {
			all = append(all, string(m))
		}
		return strings.Join(all, ",")
	}
	const thinking = `"thinking":{"type":"enabled","budget_tokens":1024}`
	body := fmt.Sprintf(`{"model":"m","max_tokens":9,%s,"system":"Be brief.","tools":[{"name":"look","input_schema":{"type":"object"}}],"thread":{"type":"create"},"messages":[%s]}`,
		thinking, join(b.msgs))
	if b.previous != "" {
		body = fmt.Sprintf(`{"model":"m","max_tokens":9,%s,"thread":{"type":"continue","previous_message_id":%q},"messages":[%s]}`, thinking, b.previous, join(b.msgs[b.sent:]))
	}
	req := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(body))
	req.Header.Set("X-Api-Key", "sk-ant-rig")
	req.Header.Set("Anthropic-Beta", "message-threads-2026-08-12")
	req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, req)
	if b.previous != "" && w.Code == http.StatusNotFound && strings.Contains(w.Body.String(), "thread_not_found") {
		b.previous = ""
		return b.step()
	}
	if w.Code != http.StatusOK {
		return nil, fmt.Errorf("got %d %s", w.Code, w.Body)
	}
	var message struct {
		ID      string            `json:"id"`
		Content []json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &message); err != nil {
		return nil, err
	}
	content, _ := json.Marshal(message.Content)
	b.msgs = append(b.msgs, json.RawMessage(`{"role":"assistant","content":`+string(content)+`}`))
	b.previous, b.sent = message.ID, len(b.msgs)
	for _, block := range message.Content {
		var f struct{ Type, ID string }
		if _ = json.Unmarshal(block, &f); f.Type == "tool_use" {
			calls = append(calls, f.ID)
		}
	}
	return calls, nil
}

// A thread is continued with new messages only, each with its block, and when
// it has expired everything comes again with each block at its place.
func TestThreads(t *testing.T) {
	for _, when := range []string{"never", "expires", "restart", "restart and expires"} {
		t.Run(when, func(t *testing.T) {
			b := &threadTalk{boundTalk: newBoundTalk(t, &proxytest.Claude{})}
			defer b.close()
			for i, q := range []string{"One. Use tools.", "Two.", "Three. Use tools.", "Four."} {
				if err := b.say(q); err != nil {
					t.Fatalf("turn %d: %v", i, err)
				}
				if i != 1 {
					continue
				}
				if strings.Contains(when, "restart") {
					b.h.ledger.Flush(t.Context())
					b.stop()
					b.start()
				}
				if strings.Contains(when, "expires") {
					b.claude.Expire()
				}
			}
			requests := b.claude.Requests()
			last := requests[len(requests)-1]
			if got := strings.Count(string(last.Body), "number is m"); got != 1 {
				t.Errorf("the last request has %d blocks, want its own", got)
			}
			blocks := 0
			for _, m := range last.Messages {
				if strings.Contains(m.Text(), "number is m") {
					blocks++
				}
			}
			if blocks != 4 {
				t.Errorf("the conversation has %d blocks, want 4", blocks)
			}
			want := 0
			if strings.Contains(when, "expires") { // the client's own attempt to continue
				want = 1
			}
			if got := b.claude.Refused(); got != want {
				t.Errorf("%d requests were refused, want %d", got, want)
			}
		})
	}
}

// A request that continues a thread is never sent twice.
func TestThreadsAreContinuedOnce(t *testing.T) {
	b := &threadTalk{boundTalk: newBoundTalk(t, &proxytest.Claude{})}
	defer b.close()
	if err := b.say("One."); err != nil {
		t.Fatal(err)
	}
	b.claude.Reset()
	b.claude.Answer = nil
	b.msgs = append(b.msgs, json.RawMessage(`{"role":"user","content":"Two."}`), json.RawMessage(`{"role":"user","content":[]}`)) // which no server takes
	if _, err := b.step(); err == nil || len(b.claude.Requests()) != 1 {
		t.Errorf("got %v after %d requests, want an error after one", err, len(b.claude.Requests()))
	}
}
