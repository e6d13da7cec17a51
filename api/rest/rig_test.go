package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// adminToken opens everything in the tests.
const adminToken = "admin-token-of-the-tests"

// rig is the REST face, behind its Guard, in front of a Service whose pipeline
// runs. Its methods hold every answer against the contract.
type rig struct {
	rest     *Handler
	handler  http.Handler
	service  *api.Service
	store    *storagetest.Mem
	pipeline *persist.Pipeline
	engine   *recall.Engine
	receipts *receipt.Recorder
	resolver *identity.Resolver
	log      *lines
	ahead    *atomic.Int64 // nanoseconds that the Service's clock is ahead

	header []string // of every request
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

// local are the settings of one person's machine, byKey those of a server whose
// tenants are by key.
func local() identity.Config {
	c := identity.DefaultConfig()
	c.Loopback = true
	return c
}

func byKey() identity.Config {
	return identity.Config{Tenant: identity.TenantKey, Anonymous: identity.AnonymousOff, SubAgents: identity.SubAgentsRead}
}

// options change a rig before it starts.
type options struct {
	who        identity.Config
	rules      []policy.Rule
	prices     []api.Price
	pipeline   func(*persist.Config)
	noReceipts bool
	loginLink  func() (string, time.Time) // nil = one that is always the same
	store      api.Store                  // nil = one in memory
}

// newService returns a rig on one person's machine, whose requests are the
// admin's.
func newService(t testing.TB) *rig { return newRig(t, options{who: local()}) }

// index notifies the engine and the receipts as the program does.
type index struct {
	*recall.Engine
	receipts *receipt.Recorder
}

func (x index) Erased(scope storage.Scope, ids ...string) {
	x.Engine.Erased(scope, ids...)
	x.receipts.Erased(scope, ids...)
}

func (x index) Drop(scope storage.Scope) {
	x.Engine.Drop(scope)
	x.receipts.Drop(scope)
}

func newRig(t testing.TB, o options) *rig {
	t.Helper()
	r := &rig{store: storagetest.Memory(), log: &lines{}, ahead: &atomic.Int64{}}
	log := slog.New(slog.NewJSONHandler(r.log, nil))
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg, own := recall.DefaultConfig(), persist.DefaultConfig()
	cfg.FirstDeadline, cfg.Deadline = 10*time.Second, 10*time.Second // a busy machine changes no result
	own.DrainTimeout = 5 * time.Second
	if o.pipeline != nil {
		o.pipeline(&own)
	}
	store := o.store
	if store == nil {
		store = r.store
	}
	if o.loginLink == nil {
		o.loginLink = func() (string, time.Time) {
			return "http://127.0.0.1:8788/login?code=x", time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
		}
	}
	r.engine = recall.New(cfg, store, log, nil)
	r.receipts = receipt.NewRecorder(store, 30*24*time.Hour, log)
	r.receipts.Redact = redact.NewCache(red).Redact
	r.pipeline = persist.New(own, store, store, index{r.engine, r.receipts}, red, log, nil)
	r.resolver = identity.New(o.who, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.pipeline.Run(ctx) })
	running.Go(func() { _ = r.engine.Run(ctx) })
	running.Go(func() { r.receipts.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	deps := api.Deps{
		Store: store, Pipeline: r.pipeline, Engine: r.engine, Recall: cfg, Identity: r.resolver, Policy: policy.New(o.rules), Receipts: r.receipts, Prices: o.prices,
		Redact: redact.NewCache(red).Redact, Placeholder: red.IsPlaceholder, Log: log,
		HidesSecret: func(text string) bool {
			redacted, _ := red.Redact(text)
			return red.HidesSecret(redacted)
		},
		Health: func() api.Health {
			return api.Health{Version: "test", StoreOpen: true, Requests: map[string]int64{}, Tokens: map[string]int64{}, Index: map[string]int64{}}
		},
		Now: func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
		Settings: func() []api.Setting {
			return []api.Setting{{Section: "recall", Key: "recall.topK", Env: "REMORA_RECALL_TOP_K", Value: "3", Default: "8", From: "config.json:12", Doc: "Maximum.", Changed: true}}
		},
		LoginLink: o.loginLink,
	}
	if o.noReceipts {
		deps.Receipts = nil
	}
	r.service = api.New(api.Config{Token: adminToken}, deps)
	r.rest = New(r.service, log)
	r.handler = Guard(r.rest, GuardOptions{Loopback: true, Log: log})
	return r.with("Authorization", "Bearer "+adminToken)
}

// with returns the rig with headers of every request, instead of those of r
// with the same names. An empty value removes one.
func (r *rig) with(header ...string) *rig {
	out := *r
	out.header = append(append([]string(nil), r.header...), header...)
	return &out
}

// tenant returns the tenant of a key as requests name it, and as the store does.
func (r *rig) tenant(t testing.TB, key string) (shown, part string) {
	t.Helper()
	secret, err := r.store.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	part = r.resolver.TenantOf(secret, key)
	return identity.Show(part), part
}

// settle waits until all that was handed in is stored and audited.
func (r *rig) settle(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.pipeline.Settle(ctx); err != nil {
		t.Fatal(err)
	}
}

// answer is what came of a request.
type answer struct {
	what   string // the request, for failures
	status int
	header http.Header
	body   string
}

// newRequest returns a request. The body is nil, or what is sent, or a value
// that is sent as JSON.
func (r *rig) newRequest(t testing.TB, method, target string, body any, header ...string) *http.Request {
	t.Helper()
	var content []byte
	switch body := body.(type) {
	case nil:
	case string:
		content = []byte(body)
	case []byte:
		content = body
	default:
		var err error
		if content, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req := httptest.NewRequest(method, target, bytes.NewReader(content))
	if body == nil {
		req = httptest.NewRequest(method, target, nil)
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Host = "localhost"
	all := append(append([]string(nil), r.header...), header...)
	for i := 0; i < len(all); i += 2 {
		if req.Header.Del(all[i]); all[i+1] != "" {
			req.Header.Set(all[i], all[i+1])
		}
	}
	return req.WithContext(t.Context())
}

// send sends a request and holds it and its answer against the contract.
func (r *rig) send(t testing.TB, method, target string, body any, header ...string) answer {
	t.Helper()
	req := r.newRequest(t, method, target, body, header...)
	var content []byte
	if req.Body != nil {
		content, _ = io.ReadAll(req.Body) // of bytes
		req.Body = io.NopCloser(bytes.NewReader(content))
	}
	a := r.serve(req)
	r.checkContract(t, req, content, a)
	return a
}

// serve serves a request.
func (r *rig) serve(req *http.Request) answer {
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return answer{fmt.Sprintf("%s %.200s", req.Method, req.URL), w.Code, w.Header(), w.Body.String()}
}

// want fails the test unless the status is this one.
func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("%s: status %d, want %d: %s", a.what, a.status, status, a.body)
	}
	return a
}

// problem fails the test unless the answer is a problem of this status, kind
// and field.
func (a answer) problem(t testing.TB, status int, kind, field string) {
	t.Helper()
	var p struct {
		Type, Title, Detail, Field string
		Status                     int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%s: status %d is no problem: %v: %s", a.what, a.status, err, a.body)
	}
	if a.status != status || p.Status != status || !strings.HasSuffix(p.Type, "#"+kind) || p.Field != field {
		t.Errorf("%s: %d %s, want %d %s field %q", a.what, a.status, a.body, status, kind, field)
	}
	if a.header.Get("Content-Type") != "application/problem+json" || p.Title == "" || p.Detail == "" {
		t.Errorf("%s: an incomplete problem: %s", a.what, a.body)
	}
}

// get decodes the answer's body.
func get[T any](t testing.TB, a answer) (v T) {
	t.Helper()
	if a.status/100 != 2 {
		t.Fatalf("%s: %d %s", a.what, a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%s: %v: %s", a.what, err, a.body)
	}
	return v
}

// object is a body.
type object = map[string]any

// add saves a fact and returns it.
func (r *rig) add(t testing.TB, query, text string, more object) api.Memory {
	t.Helper()
	body := object{"text": text}
	for k, v := range more {
		body[k] = v
	}
	return get[api.Added](t, r.send(t, "POST", "/v1/memories?"+query, body)).Memory
}

// list returns all memories that a query selects, page by page.
func (r *rig) list(t testing.TB, query string) (all []api.Memory) {
	t.Helper()
	for cursor := ""; ; {
		page := get[api.Memories](t, r.send(t, "GET", "/v1/memories?"+query+"&cursor="+cursor, nil))
		all = append(all, page.Memories...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

func texts(ms []api.Memory) (out []string) {
	for i := range ms {
		out = append(out, ms[i].Text)
	}
	return out
}

// say reports what a user said in a conversation, and an answer to it.
func (r *rig) say(t testing.TB, user, thread string, n int, text string) {
	t.Helper()
	r.send(t, "POST", "/v1/events/message", object{
		"userId": user, "threadId": thread, "msgId": fmt.Sprint("m", n), "role": "user", "content": text,
	}).want(t, http.StatusAccepted)
}
