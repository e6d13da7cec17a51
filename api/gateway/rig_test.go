package gateway

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

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// token is the admin token of the rig.
const token = "admin-token-of-the-rig"

// rig is the face in front of a real Service, with a pipeline that runs.
type rig struct {
	url     string
	service *api.Service
	store   *storagetest.Mem
	log     *lines
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

func newRig(t testing.TB, set func(*identity.Config), o Options) *rig {
	t.Helper()
	r := &rig{store: storagetest.Memory(), log: &lines{}}
	log := slog.New(slog.NewJSONHandler(r.log, nil))
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	who := identity.DefaultConfig()
	who.Loopback = true
	if set != nil {
		set(&who)
	}
	cfg := recall.DefaultConfig()
	engine := recall.New(cfg, r.store, log, nil)
	pipeline := persist.New(persist.DefaultConfig(), r.store, r.store, engine, red, log, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = pipeline.Run(ctx) })
	wg.Go(func() { _ = engine.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	r.service = api.New(api.Config{Token: token}, api.Deps{
		Store: r.store, Pipeline: pipeline, Engine: engine, Recall: cfg, Identity: identity.New(who, nil), Policy: policy.New(nil),
		Redact: redact.NewCache(red).Redact, Placeholder: red.IsPlaceholder, Log: log,
	})
	o.Log = log
	server := httptest.NewServer(http.StripPrefix("/compat/gateway", Handler(r.service, o)))
	t.Cleanup(server.Close)
	r.url = server.URL + "/compat/gateway"
	return r
}

// post sends a body and returns the status and the answer.
func (r *rig) post(t testing.TB, path, body string, header ...string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// body returns the JSON of a request's fields, with the identity of ines.
func body(more map[string]any) string {
	all := map[string]any{"user_id": "ines", "user_key": token}
	for k, v := range more {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// said returns the messages of one turn.
func said(user, assistant string) []map[string]any {
	now := time.Now().UnixMilli()
	return []map[string]any{
		{"sender_id": "ines", "role": "user", "timestamp": now, "content": user},
		{"sender_id": "assistant", "role": "assistant", "timestamp": now + 1, "content": assistant},
	}
}

// tell adds a turn and flushes.
func (r *rig) tell(t testing.TB, session, user string, more ...string) {
	t.Helper()
	fields := map[string]any{"session_id": session, "messages": said(user, "Noted.")}
	for i := 0; i < len(more); i += 2 {
		fields[more[i]] = more[i+1]
	}
	for _, path := range []string{"/memories/add", "/memories/flush"} {
		if status, answer := r.post(t, path, body(fields)); status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
	}
}

// find searches and returns the results.
func (r *rig) find(t testing.TB, query string, more map[string]any) []map[string]any {
	t.Helper()
	fields := map[string]any{"query": query, "scope": []string{"current_chat", "resources", "all_user_memory"}}
	for k, v := range more {
		fields[k] = v
	}
	status, answer := r.post(t, "/memories/search", body(fields))
	if status != http.StatusOK {
		t.Fatalf("search: %d %s", status, answer)
	}
	var out struct{ Results []map[string]any }
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatal(err)
	}
	return out.Results
}
