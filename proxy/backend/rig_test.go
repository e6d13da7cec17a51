package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// patience is how long tests wait for what must happen.
const patience = 20 * time.Second

const key = redact.Secret("mg-key-3f9a77c2e1")

// server is a fake Memory Gateway that records what it gets.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []asked
	answer func(path string) (status int, body string)
}

type asked struct {
	path, raw string
	header    http.Header
	body      map[string]any
}

func newServer(t testing.TB) *server {
	s := &server{}
	s.answers(func(path string) (int, string) {
		if path == "/api/memories/search" {
			return 200, `{"results":[]}`
		}
		return 200, `{}`
	})
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	a := asked{r.URL.Path, string(b), r.Header.Clone(), nil}
	_ = json.Unmarshal(b, &a.body)
	s.mu.Lock()
	s.asked = append(s.asked, a)
	answer := s.answer
	s.mu.Unlock()
	status, body := answer(r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	if status/100 == 3 {
		w.Header().Set("Location", "/api/memories/elsewhere")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func (s *server) answers(f func(path string) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// requests returns what came since the last call.
func (s *server) requests() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// events returns the events of a name.
func (l *lines) events(name string) (out []map[string]any) {
	for line := range strings.Lines(l.String()) {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil && e["msg"] == name {
			out = append(out, e)
		}
	}
	return out
}

// deps redacts one word, and logs.
func deps(log *lines) Deps {
	return Deps{
		Redact:           func(text string) string { return strings.ReplaceAll(text, "hunter2", "[PASSWORD]") },
		OnlyPlaceholders: func(text string) bool { return text == "[PASSWORD]" },
		Log:              slog.New(slog.NewJSONHandler(log, nil)),
	}
}

func gatewayConfig(url string) GatewayConfig {
	c := DefaultConfig().Gateway
	c.BaseURL, c.UserID, c.UserKey = url+"/api/", "ines", key
	return c
}

// running returns a Gateway that runs until the test ends, or stop is called.
func running(t testing.TB, cfg GatewayConfig) (g *Gateway, log *lines, stop func()) {
	t.Helper()
	log = &lines{}
	g, err := NewGateway(cfg, deps(log))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return g, log, stop
}

func ask(text string) recall.Request {
	return recall.Request{
		Scope: storage.Scope{Tenant: "local", App: "default", Project: "default", User: "anybody"}, Conversation: "c1", Newest: text, HumanOnly: true,
	}
}

func turnOf(conversation, user, assistant string) persist.Turn {
	return persist.Turn{
		ID: "t", Scope: storage.Scope{Tenant: "local", App: "default", Project: "default", User: "anybody"}, Conversation: conversation, Finish: "stop",
		Messages: []persist.Message{
			{Role: storage.RoleUser, Text: user, Time: 1_700_000_000_000}, {Role: storage.RoleAssistant, Text: assistant, Time: 1_700_000_000_500},
		},
	}
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
