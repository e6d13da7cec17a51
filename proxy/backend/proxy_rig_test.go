package backend_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/gateway"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// patience is how long tests wait for what must happen.
const patience = 20 * time.Second

const (
	token   = "admin-token-of-the-other-remora"
	ownFact = "My dog is called Biscuit and she is a beagle."
)

// logged is a log that can be read while it is written.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func redactor(t testing.TB) *redact.Redactor {
	t.Helper()
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return red
}

// otherRemora serves the memory of a Remora as a Memory Gateway.
func otherRemora(t testing.TB) (url string, store *storagetest.Mem) {
	t.Helper()
	store = storagetest.Memory()
	red, cfg, who := redactor(t), recall.DefaultConfig(), identity.DefaultConfig()
	who.Loopback = true
	cfg.Deadline, cfg.FirstDeadline = patience, patience
	engine := recall.New(cfg, store, nil, nil)
	pipeline := persist.New(persist.DefaultConfig(), store, store, engine, red, nil, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = pipeline.Run(ctx) })
	wg.Go(func() { _ = engine.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	service := api.New(api.Config{Token: token}, api.Deps{
		Store: store, Pipeline: pipeline, Engine: engine, Recall: cfg, Identity: identity.New(who, nil), Policy: policy.New(nil),
		Redact: redact.NewCache(red).Redact, Placeholder: red.IsPlaceholder,
	})
	server := httptest.NewServer(http.StripPrefix("/compat/gateway", gateway.Handler(service, gateway.Options{})))
	t.Cleanup(server.Close)
	return server.URL + "/compat/gateway", store
}

// agent is a client of a Remora that works with a backend.
type agent struct {
	t   testing.TB
	url string
	llm *proxytest.LLM
	log *logged
	gw  *backend.Gateway // nil in curated mode
}

// proxied returns an agent whose requests pass a Remora with this backend.
func proxied(t testing.TB, log *logged, b interface {
	proxy.Recaller
	proxy.Persister
}, set func(*proxy.Config)) *agent {
	t.Helper()
	llm := &proxytest.LLM{Answer: func(proxytest.Recorded) proxytest.Reply { return proxytest.Reply{Text: "Noted."} }}
	upstream := httptest.NewServer(llm)
	t.Cleanup(upstream.Close)
	cfg := proxy.DefaultConfig()
	cfg.Upstreams = []httpclient.UpstreamConfig{{Name: "llm", URL: upstream.URL, Paths: []string{"/"}}}
	cfg.Identity.Loopback = true
	cfg.RecallDeadline, cfg.FirstDeadline = patience, patience
	if set != nil {
		set(&cfg)
	}
	red := redactor(t)
	h, err := proxy.New(cfg, proxy.Deps{
		Recall: b, Persist: b, Local: storagetest.Memory(), Log: slog.New(slog.NewJSONHandler(log, nil)),
		Redact: redact.NewCache(red).Redact, Placeholder: red.IsPlaceholder,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { h.Run(ctx) })
	front := httptest.NewServer(h)
	t.Cleanup(func() { front.Close(); cancel(); wg.Wait() })
	return &agent{t: t, url: front.URL, llm: llm, log: log}
}

// gatewayAgent is an agent whose Remora uses the gateway at url as this user.
func gatewayAgent(t testing.TB, url, user, key string, set func(*proxy.Config)) *agent {
	t.Helper()
	log, red := &logged{}, redactor(t)
	cfg := backend.DefaultConfig().Gateway
	cfg.BaseURL, cfg.UserID, cfg.UserKey = url, user, redact.Secret(key)
	gw, err := backend.NewGateway(cfg, backend.Deps{
		Redact: redact.NewCache(red).Redact, OnlyPlaceholders: red.OnlyPlaceholders, Log: slog.New(slog.NewJSONHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = gw.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() }) // after the proxy
	a := proxied(t, log, gw, set)
	a.gw = gw
	return a
}

// says sends a conversation and returns the status of its memory and what the
// model was sent.
func (a *agent) says(lines ...string) (status, body string) {
	a.t.Helper()
	return a.send(proxytest.ChatBody(lines...))
}

func (a *agent) send(body string) (status, sent string) {
	a.t.Helper()
	a.llm.Reset()
	req, err := http.NewRequest(http.MethodPost, a.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-of-the-agent")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		a.t.Fatalf("%d %s, %v", resp.StatusCode, answer, err)
	}
	got := a.llm.Requests()
	if len(got) != 1 {
		a.t.Fatalf("the model got %d requests", len(got))
	}
	return resp.Header.Get("X-Remora-Status"), string(got[0].Body)
}

// remembered waits until n turns are with the gateway.
func (a *agent) remembered(n int64) {
	a.t.Helper()
	for deadline := time.Now().Add(patience); a.gw.Stats().Flushed < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("not remembered in time: %+v\n%s", a.gw.Stats(), a.log)
		}
	}
}
