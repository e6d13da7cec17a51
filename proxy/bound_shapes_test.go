package proxy

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// shapeTalk is a client that writes its requests as one was recorded.
type shapeTalk struct {
	body     map[string]any
	messages []any
}

// post sends the conversation to one that answers as the server or the proxy
// does, and appends the answer.
func (s *shapeTalk) post(serve func(*httptest.ResponseRecorder, string)) error {
	s.body["messages"] = s.messages
	raw, err := json.Marshal(s.body)
	if err != nil {
		return err
	}
	w := httptest.NewRecorder()
	if serve(w, string(raw)); w.Code != 200 {
		return fmt.Errorf("%d %s", w.Code, w.Body)
	}
	var answer struct{ Content []any }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		return err
	}
	s.messages = append(s.messages, map[string]any{"role": "assistant", "content": answer.Content})
	return nil
}

// next appends what the person says next. The cache mark moves to it, as
// clients do.
func (s *shapeTalk) next(text string) {
	unmark(s.messages)
	s.messages = append(s.messages, map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "text", "text": "<system-reminder>\nIt is late.\n</system-reminder>"},
		map[string]any{"type": "text", "text": text, "cache_control": map[string]any{"type": "ephemeral"}},
	}})
}

func unmark(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			unmark(e)
		}
	case map[string]any:
		delete(v, "cache_control")
		for _, e := range v {
			unmark(e)
		}
	}
}

// Conversations that begin as real clients write them live through kills and
// forgetting, too.
func TestRecordedShapesLive(t *testing.T) {
	files, err := filepath.Glob("dialect/testdata/messages/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		request := ""
		for _, f := range archive.Files {
			if f.Name == "request" {
				request = string(f.Data)
			}
		}
		talk := func() *shapeTalk {
			var body map[string]any
			if json.Unmarshal([]byte(request), &body) != nil {
				return nil
			}
			messages, _ := body["messages"].([]any)
			if len(messages) == 0 || messages[len(messages)-1].(map[string]any)["role"] != "user" {
				return nil
			}
			body["stream"], body["max_tokens"] = false, 2000
			body["thinking"] = map[string]any{"type": "enabled", "budget_tokens": 1024}
			return &shapeTalk{body, messages}
		}
		if request == "" || talk() == nil {
			continue
		}
		alone := &proxytest.Claude{}
		if talk().post(func(w *httptest.ResponseRecorder, body string) {
			alone.ServeHTTP(w, (&boundTalk{process: &process{}}).request(body))
		}) != nil {
			continue // refused without a proxy, too
		}
		played++
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, forgets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/forgets=%v", name, forgets), func(t *testing.T) {
				b := newBoundTalk(t, &proxytest.Claude{})
				defer b.close()
				s := talk()
				for turn := range 5 {
					if turn > 0 {
						s.next(fmt.Sprintf("Question %d.", turn))
					}
					if err := s.post(func(w *httptest.ResponseRecorder, body string) { b.h.ServeHTTP(w, b.request(body)) }); err != nil {
						t.Fatalf("turn %d: %v", turn, err)
					}
					if forgets && turn == 2 {
						b.forget()
					}
					b.kill()
					b.start()
				}
				want := 0
				if forgets {
					want = 1
				}
				if got := b.claude.Refused(); got > want {
					t.Errorf("%d requests were refused, want at most %d", got, want)
				}
			})
		}
	}
	if played < 10 {
		t.Errorf("%d shapes were played, want at least 10", played)
	}
}
