package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// results answers searches with results, as JSON.
func (s *server) results(list ...string) {
	s.answers(func(string) (int, string) { return 200, `{"results":[` + strings.Join(list, ",") + `]}` })
}

func TestSearchRequest(t *testing.T) {
	s := newServer(t)
	g, log, _ := running(t, gatewayConfig(s.URL))
	res, err := g.Recall(t.Context(), ask("What is my dog called, hunter2?"))
	if err != nil || len(res.Memories) != 0 {
		t.Fatalf("got %v, %v", res, err)
	}
	got := s.requests()
	if len(got) != 1 || got[0].path != "/api/memories/search" || got[0].header.Get("Content-Type") != "application/json" {
		t.Fatalf("got %v", got)
	}
	want := map[string]any{
		"user_id": "ines", "user_key": key.Reveal(), "conversation_id": "c1", "query": "What is my dog called, [PASSWORD]?",
		"scope": []any{"current_chat", "resources", "all_user_memory"}, "top_k": 8.0, "app_id": "default", "project_id": "default",
	}
	if !maps.EqualFunc(got[0].body, want, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("sent %s", got[0].raw)
	}
	events := log.events(eventRecall)
	if len(events) != 1 || events[0]["scope"] != "current_chat,resources,all_user_memory" || events[0]["count"] != 0.0 {
		t.Errorf("events %v", events)
	}
	if auth := got[0].header.Get("Authorization"); auth != "" {
		t.Errorf("the key is in a header, too: %q", auth)
	}
}

func TestQuery(t *testing.T) {
	s := newServer(t)
	g, _, _ := running(t, gatewayConfig(s.URL))
	for _, tt := range []struct{ name, newest, want string }{
		{"nothing", " \n", ""},
		{"words", " tea ", "tea"},
		{"a recalled block", "<remora-memory-4f1c0a9be77d>\nReference data\n- user: tea\n</remora-memory-4f1c0a9be77d>\nWhich tea?", "Which tea?"},
		{"a block alone", "<remora-memory-4f1c0a9be77d>\n- user: tea\n</remora-memory-4f1c0a9be77d>\n", ""},
	} {
		r := ask(tt.newest)
		if got := g.query(&r); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	long := ask("first " + strings.Repeat("ä ", 100_000) + " hunter2 last?")
	if got := g.query(&long); len(got) > 4096 || !strings.HasPrefix(got, "first ") || !strings.HasSuffix(got, "[PASSWORD] last?") {
		t.Errorf("a long message: %d bytes, %.20q", len(got), got)
	}
	wrapped := ask("<system-reminder>be brief</system-reminder>\nWhich tea?")
	wrapped.HumanOnly = false
	if got := g.query(&wrapped); got != "Which tea?" {
		t.Errorf("wrapped: %q", got)
	}
	if _, err := g.Recall(t.Context(), ask("  ")); err != nil || len(s.requests()) != 0 {
		t.Errorf("nothing is asked for: %v", err)
	}
}

func TestResults(t *testing.T) {
	s := newServer(t)
	g, log, _ := running(t, gatewayConfig(s.URL))
	s.results(
		`{"id":"m1","session_id":"chat:c0","text":"The dog is called Biscuit.","score":0.9,"source_scope":"all_user_memory","resource_uri":"","raw":{"text":"RAW"}}`,
		`{"id":"m2","session_id":null,"text":"The licence ends in May.","score":0.8,"source_scope":"resources","resource_uri":"file:///dogs.md"}`,
		`{"id":"m3","text":"  "}`, `{"id":7,"text":"a number as id"}`, `"text"`, `null`, `[]`,
		`{"id":"m1","text":"the same again"}`,
		`{"text":"without an id"}`,
	)
	res, err := g.Recall(t.Context(), ask("my dog"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range res.Memories {
		got = append(got, fmt.Sprintf("%s %s %s %s %v", m.Memory.Kind, m.Memory.Conversation, m.Memory.Text, strings.Join(m.Memory.Tags, ","), m.Score))
		if m.Memory.ID == "" || len(m.Memory.ID) > storage.MaxID || m.Memory.Trust == 0 {
			t.Errorf("%+v", m.Memory)
		}
	}
	want := []string{
		"episode c0 The dog is called Biscuit.  0.9", "resource  The licence ends in May. resource:file:///dogs.md 0.8", "episode  without an id  0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if whole := fmt.Sprintf("%+v", res); strings.Contains(whole, "RAW") {
		t.Errorf("raw is used: %s", whole)
	}
	if e := log.events(eventRecall); len(e) != 1 || e[0]["count"] != 3.0 {
		t.Errorf("events %v", e)
	}
}

func TestResultsOfARequest(t *testing.T) {
	s := newServer(t)
	cfg := gatewayConfig(s.URL)
	cfg.TopK = 3
	g, _, _ := running(t, cfg)
	s.results(`{"id":"own","session_id":"chat:c1","text":"said here"}`, `{"id":"seen","text":"shown before"}`, `{"id":"doc","text":"a document","source_scope":"resources"}`,
		`{"id":"a","text":"a"}`, `{"id":"b","text":"b"}`, `{"id":"c","text":"c"}`)
	for _, tt := range []struct {
		name string
		set  func(*recall.Request)
		want string
	}{
		{"a request without history", func(*recall.Request) {}, "own seen doc"},
		{"with its whole history", func(r *recall.Request) { r.Previous = func() string { return "before" } }, "seen doc a"},
		{"with a window of it", func(r *recall.Request) { r.Previous, r.VisibleTurns = func() string { return "before" }, 2 }, "own seen doc"},
		{"with a block", func(r *recall.Request) { r.VisibleIDs = map[string]struct{}{"seen": {}} }, "own doc a"},
		{"without documents", func(r *recall.Request) {
			r.Allow = func(k storage.Kind, _ []string) bool { return k != storage.KindResource }
		}, "own seen a"},
		{"of one", func(r *recall.Request) { r.TopK = 1 }, "own"},
		{"into a slice", func(r *recall.Request) { r.Into = make([]recall.Scored, 1, 8) }, "own seen doc"},
	} {
		r := ask("my dog")
		tt.set(&r)
		res, err := g.Recall(t.Context(), r)
		var ids []string
		for _, m := range res.Memories {
			ids = append(ids, m.Memory.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// A long text is redacted before it is cut: a part of a secret may not look like
// one.
func TestLongResult(t *testing.T) {
	s := newServer(t)
	g, _, _ := running(t, gatewayConfig(s.URL))
	text, _ := json.Marshal(map[string]string{"id": "m", "text": strings.Repeat("ä", 1018) + " hunter2 and " + strings.Repeat("more ", 1000)})
	s.results(string(text))
	r := ask("my dog")
	r.Screen = g.deps.Redact
	res, err := g.Recall(t.Context(), r)
	if err != nil || len(res.Memories) != 1 {
		t.Fatal(res, err)
	}
	if got := res.Memories[0].Memory.Text; len(got) > maxText || strings.Contains(got, "hunt") || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes, ends in %q", len(got), got[len(got)-20:])
	}
}

// Each way to fail is an error of a category and an event, after one attempt,
// without anything of what was sent or received.
func TestRecallFailures(t *testing.T) {
	refused := httptest.NewServer(nil)
	refused.Close()
	big := `{"results":[],"more":"` + strings.Repeat("x", maxResponse) + `"}`
	for _, tt := range []struct {
		name     string
		status   int
		body     string
		category Category
	}{
		{"a refused connection", 0, "", Refused},
		{"401", 401, `{"detail":"SENT mg-key-3f9a77c2e1"}`, Unauthorized},
		{"403", 403, `{}`, BadStatus},
		{"404", 404, `nothing`, BadStatus},
		{"429", 429, `{}`, BadStatus},
		{"500", 500, `{"results":[{"id":"m","text":"SENT"}]}`, BadStatus},
		{"a redirect", 307, ``, BadStatus},
		{"no JSON", 200, `SENT <html>`, InvalidJSON},
		{"half of it", 200, `{"results":[{"id":"m","text":"SENT"}`, InvalidJSON},
		{"nothing", 200, ``, InvalidJSON},
		{"a list", 200, `[{"id":"m","text":"SENT"}]`, WrongShape},
		{"no results", 200, `{"data":{"results":[{"id":"m","text":"SENT"}]}}`, WrongShape},
		{"results as an object", 200, `{"results":{"id":"m"}}`, WrongShape},
		{"results as null", 200, `{"results":null}`, WrongShape},
		{"too much", 200, big, WrongShape},
	} {
		s := newServer(t)
		url := s.URL
		if tt.status == 0 {
			url = refused.URL
		}
		g, log, stop := running(t, gatewayConfig(url))
		s.answers(func(string) (int, string) { return tt.status, tt.body })
		res, err := g.Recall(t.Context(), ask("SENT my dog"))
		if err == nil || len(res.Memories) != 0 {
			t.Errorf("%s: got %v, %v", tt.name, res, err)
			continue
		}
		if n := len(s.requests()); tt.status != 0 && n != 1 {
			t.Errorf("%s: %d attempts", tt.name, n)
		}
		events := log.events(eventRecallFailed)
		if len(events) != 1 || events[0]["category"] != string(tt.category) || events[0]["operation"] != "recall" || events[0]["status"] != float64(tt.status) {
			t.Errorf("%s: events %v", tt.name, events)
		}
		if n := g.Stats().Failed["recall"][tt.category]; n != 1 {
			t.Errorf("%s: stats %+v", tt.name, g.Stats())
		}
		for _, private := range []string{key.Reveal(), "SENT", s.URL, refused.URL} {
			if strings.Contains(err.Error(), private) || strings.Contains(log.String(), private) {
				t.Errorf("%s: %q is in the error or the log: %v\n%s", tt.name, private, err, log)
			}
		}
		if len(log.events(eventRecall)) != 0 || g.Stats().Recalls != 0 {
			t.Errorf("%s: it also succeeded", tt.name)
		}
		stop()
	}
}

// A gateway that hangs costs a request its deadline and no more.
func TestRecallDeadline(t *testing.T) {
	s := newServer(t)
	hang := make(chan struct{})
	defer close(hang)
	s.answers(func(string) (int, string) { <-hang; return 200, `{"results":[{"id":"m","text":"late"}]}` })
	g, log, _ := running(t, gatewayConfig(s.URL))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	began := time.Now()
	res, err := g.Recall(ctx, ask("my dog"))
	if !errors.Is(err, recall.ErrTimeout) || len(res.Memories) != 0 {
		t.Errorf("got %v, %v", res, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if e := log.events(eventRecallFailed); len(e) != 1 || e[0]["category"] != "timeout" || e[0]["status"] != 0.0 {
		t.Errorf("events %v", e)
	}

	cfg := gatewayConfig(s.URL)
	cfg.Timeout = 20 * time.Millisecond
	g, log, _ = running(t, cfg)
	if _, err := g.Recall(t.Context(), ask("my dog")); !errors.Is(err, recall.ErrTimeout) {
		t.Errorf("its own time-out: %v", err)
	}
	if e := log.events(eventRecallFailed); len(e) != 1 || e[0]["category"] != "timeout" {
		t.Errorf("events %v", e)
	}

	g, log, _ = running(t, gatewayConfig(s.URL))
	gone, leave := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, leave)
	if _, err := g.Recall(gone, ask("my dog")); err == nil || errors.Is(err, recall.ErrTimeout) {
		t.Errorf("a client that left: %v", err)
	}
	if e := log.events(eventRecallFailed); len(e) != 1 || e[0]["category"] != "canceled" {
		t.Errorf("events %v", e)
	}
}

// After three failures in a row the gateway is not searched for 5 s, then twice
// as long each time, at most 30 s, with one attempt in between. That is said
// once, as is that it answers again.
func TestSearchesPause(t *testing.T) {
	s := newServer(t)
	var log lines
	var now atomic.Int64
	d := deps(&log)
	d.Now = func() time.Time { return time.Unix(now.Load(), 0) }
	g, err := NewGateway(gatewayConfig(s.URL), d)
	if err != nil {
		t.Fatal(err)
	}
	const pauses, recovers = "the memory gateway fails or is too slow: requests are not given its memories for now", "the memory gateway has recovered"
	failing := true
	s.answers(func(string) (int, string) {
		if failing {
			return 503, "{}"
		}
		return 200, `{"results":[]}`
	})
	search := func(what string, wantAsked int, wantErr bool) {
		t.Helper()
		_, err := g.Recall(t.Context(), ask("my dog"))
		if n := len(s.requests()); n != wantAsked || (err != nil) != wantErr {
			t.Errorf("%s: %d requests, %v", what, n, err)
		}
	}
	for range 3 {
		search("before", 1, true)
	}
	search("paused", 0, true)
	if got := g.Stats(); !got.Paused || got.Failed["recall"][Paused] != 1 || len(log.events(eventRecallFailed)) != 3 {
		t.Errorf("stats %+v, events %v", got, log.events(eventRecallFailed))
	}
	for _, pause := range []int64{5, 10, 20, 30, 30} {
		now.Add(pause - 1)
		search("a second before the end of a pause", 0, true)
		now.Add(1)
		search("after a pause", 1, true)
	}
	if e := log.events(pauses); len(e) != 1 || e[0]["level"] != "WARN" || e[0]["category"] != "status" || e[0]["status"] != 503.0 {
		t.Errorf("the pause is logged as %v", e)
	}
	failing = false
	search("too early", 0, true)
	now.Add(30)
	for range 4 {
		search("recovered", 1, false)
	}
	if e := log.events(recovers); len(e) != 1 || g.Stats().Paused {
		t.Errorf("recovered: %v, %+v", e, g.Stats())
	}
}

// A gateway that hangs costs three requests gateway.recallTimeout, and further
// ones nothing. What says nothing of the gateway does not count: clients that
// leave, and searches that were given hardly any time.
func TestHungGateway(t *testing.T) {
	s := newServer(t)
	hang := make(chan struct{})
	defer close(hang)
	s.answers(func(string) (int, string) { <-hang; return 200, `{"results":[]}` })
	cfg := gatewayConfig(s.URL)
	cfg.RecallTimeout = 300 * time.Millisecond
	g, _, _ := running(t, cfg)
	search := func(ctx context.Context) (took time.Duration, err error) {
		began := time.Now()
		_, err = g.Recall(ctx, ask("my dog"))
		return time.Since(began), err
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 4 {
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, _ = search(short)
		cancel()
		_, _ = search(gone)
	}
	if g.Stats().Paused {
		t.Fatal("it is not asked although it had no time to answer")
	}
	for range 3 {
		if took, err := search(t.Context()); !errors.Is(err, recall.ErrTimeout) || took > cfg.Timeout/2 {
			t.Errorf("%v after %v", err, took)
		}
	}
	var failed *failure
	if took, err := search(t.Context()); !errors.As(err, &failed) || failed.category != Paused || errors.Is(err, recall.ErrTimeout) || took > cfg.RecallTimeout/2 {
		t.Errorf("the fourth: %v after %v", err, took)
	}
}

func TestLoaded(t *testing.T) {
	g, _, _ := running(t, gatewayConfig("http://127.0.0.1:1"))
	if loaded, since := g.Loaded(storage.Scope{}); !loaded || !since.IsZero() {
		t.Error("it is not loaded")
	}
}
