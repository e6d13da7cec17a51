package proxytest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func post(t *testing.T, l *LLM, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions?x", strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	l.ServeHTTP(w, r)
	return w
}

func TestCompletion(t *testing.T) {
	l := &LLM{}
	w := post(t, l, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`)
	var got struct {
		Model   string
		Choices []struct {
			Message struct{ Role, Content string }
			Finish  string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != 200 || got.Model != "m" || got.Choices[0].Message.Content != "You said: a\nb" || got.Choices[0].Finish != "stop" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestStream(t *testing.T) {
	var before []int
	l := &LLM{
		Answer: func(r Recorded) Reply {
			return Reply{Text: r.Last("user") + " there", Calls: []Call{{ID: "1", Name: "f", Arguments: "{}"}}}
		},
		BeforeEvent: func(i int) { before = append(before, i) },
	}
	w := post(t, l, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`)
	var text, finish string
	var calls, usages int
	events := strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n")
	for _, e := range events[:len(events)-1] {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string
					Calls   []any `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Usage map[string]int
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &chunk); err != nil {
			t.Fatalf("%q: %v", e, err)
		}
		if chunk.Usage != nil {
			usages++
		}
		for _, c := range chunk.Choices {
			text, finish, calls = text+c.Delta.Content, finish+c.Finish, calls+len(c.Delta.Calls)
		}
	}
	if text != "hi there" || finish != "tool_calls" || calls != 1 || usages != 1 || events[len(events)-1] != "data: [DONE]" {
		t.Errorf("got text %q, finish %q, %d calls, %d usages: %s", text, finish, calls, usages, w.Body)
	}
	if len(before) != len(events) {
		t.Errorf("BeforeEvent: got %d calls for %d events", len(before), len(events))
	}
}

func TestCut(t *testing.T) {
	s := httptest.NewServer(&LLM{Answer: func(Recorded) Reply { return Reply{Text: "one two three", CutAfter: 2} }})
	defer s.Close()
	for _, stream := range []string{"true", "false"} {
		resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":`+stream+`,"messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.ReadAll(resp.Body); err == nil {
			t.Errorf("stream=%s: got a clean end, want it cut", stream)
		}
		resp.Body.Close()
	}
}

func TestRefusals(t *testing.T) {
	const (
		twoUsers    = `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"b"}]}`
		twoSystems  = `{"messages":[{"role":"system","content":"s"},{"role":"developer","content":"a"}]}`
		streaming   = `{"stream":true,"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"b"}]}`
		alternating = `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`
	)
	tests := []struct {
		name   string
		llm    *LLM
		body   string
		status int
		says   string
	}{
		{"lenient", &LLM{}, twoUsers, 200, "You said: b"},
		{"vllm, two users", &LLM{Strict: VLLM}, twoUsers, 400, "roles must alternate"},
		{"vllm, two systems", &LLM{Strict: VLLM}, twoSystems, 400, "must be at the beginning"},
		{"vllm, alternating", &LLM{Strict: VLLM}, alternating, 200, "You said: c"},
		{"llama.cpp", &LLM{Strict: LlamaCPP}, twoUsers, 500, "Jinja Exception"},
		{"lm studio", &LLM{Strict: LMStudio}, twoUsers, 400, `{"error":"Error rendering prompt with jinja template`},
		{"lm studio, stream", &LLM{Strict: LMStudio}, streaming, 200, "event: error\ndata: {\"error\":{\"message\":\"Error rendering prompt with jinja template"},
		{"lm studio, too long a stream", &LLM{Strict: LMStudio, MaxContext: 2}, streaming, 200, "event: error\ndata: {\"error\":{\"message\":\"Trying to keep the first 3 tokens"},
		{"too long", &LLM{MaxContext: 2}, twoUsers, 400, "context_length_exceeded"},
		{"scripted", &LLM{Answer: func(Recorded) Reply { return Reply{Status: 429, Body: "slow down"} }}, twoUsers, 429, "slow down"},
		{"not JSON", &LLM{}, `{"messages":`, 400, "not a chat completion"},
	}
	for _, tt := range tests {
		w := post(t, tt.llm, tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s: got %d %s, want %d with %q", tt.name, w.Code, w.Body, tt.status, tt.says)
		}
	}
}

func TestRecords(t *testing.T) {
	l := &LLM{Keep: 2}
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(zw, `{"model":"m","messages":[{"role":"user","content":"zipped"}]}`)
	zw.Close()
	post(t, l, `{"messages":[]}`)
	post(t, l, ` {"messages" : [] } `, "X-A", "1")
	post(t, l, zipped.String(), "Content-Encoding", "gzip")
	got := l.Requests()
	if len(got) != 2 {
		t.Fatalf("got %d requests, want the newest 2", len(got))
	}
	if g, want := string(got[0].Body), ` {"messages" : [] } `; g != want || got[0].Header.Get("X-A") != "1" || got[0].Target != "/v1/chat/completions?x" {
		t.Errorf("got %+v", got[0])
	}
	if !bytes.Equal(got[1].Body, zipped.Bytes()) {
		t.Error("the body was not kept as sent")
	}
	if diff := cmp.Diff([]Message{{"user", "zipped"}}, got[1].Messages); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	l.Reset()
	if got := l.Requests(); len(got) != 0 {
		t.Errorf("after Reset: got %d requests", len(got))
	}
}

func TestOtherPaths(t *testing.T) {
	l := &LLM{}
	w := httptest.NewRecorder()
	l.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"object":"list"`) {
		t.Errorf("models: got %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodPut, "/v1/files/1", strings.NewReader("\x00\x01"))
	r.Header.Set("Content-Type", "application/octet-stream")
	w = httptest.NewRecorder()
	l.ServeHTTP(w, r)
	if w.Code != 200 || w.Body.String() != "\x00\x01" || w.Header().Get("Content-Type") != "application/octet-stream" {
		t.Errorf("echo: got %d %q %v", w.Code, w.Body, w.Header())
	}
}
