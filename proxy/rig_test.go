package proxy

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// rig is a Handler between a real client and a real upstream, with a scripted
// memory and a clock that tests move.
type rig struct {
	t       *testing.T
	h       *Handler
	url     string
	recall  *fakeRecall
	persist *fakePersist
	local   storage.Local
	posted  int64
	path    string // where post sends to
	// encoding is the Content-Encoding that the upstream says its answers have.
	encoding string
	served   atomic.Int64

	mu       sync.Mutex
	now      time.Time
	received []received
	answer   func(received) (code int, contentType, body string)
}

type received struct {
	path   string
	header http.Header
	body   string
}

// rigOption changes the configuration before the handler is made.
type rigOption func(*Config, *Deps)

// ownClient chooses the client for the rig's plain upstream: Remora's own, or
// http.Transport. The environment proxy is never used for loopback addresses.
func ownClient(own bool) rigOption {
	return func(c *Config, _ *Deps) { c.Transport.ProxyFromEnvironment = !own }
}

func newRig(t *testing.T, opts ...rigOption) *rig {
	t.Helper()
	r := &rig{
		t: t, now: time.Now().Truncate(time.Second), // stores expire by the real clock

		recall: &fakeRecall{}, persist: &fakePersist{}, path: apis[0].path,
		answer: func(received) (int, string, string) { return 200, "application/json", chatAnswer("", "fine") },
	}
	r.local = storagetest.Memory()
	up := httptest.NewServer(http.HandlerFunc(r.upstream))
	t.Cleanup(up.Close)
	u, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Upstreams = []httpclient.UpstreamConfig{{Name: "mock", URL: u.String(), Paths: []string{"/"}}}
	cfg.Identity.Loopback = true
	cfg.FirstDeadline = patience // a loaded machine must not decide these tests
	cfg.RecallDeadline = patience
	deps := Deps{Recall: r.recall, Persist: r.persist, Local: r.local, Now: r.clock}
	for _, o := range opts {
		o(&cfg, &deps)
	}
	r.start(cfg, deps)
	return r
}

func (r *rig) start(cfg Config, deps Deps) {
	h, err := New(cfg, deps)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	r.t.Cleanup(func() { cancel(); <-done }) // after the door
	r.h, r.url = h, "http://"+hopServe(r.t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer r.served.Add(1)
		h.ServeHTTP(w, req)
	}))
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) sleep(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) upstream(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	got := received{req.URL.Path, req.Header.Clone(), string(b)}
	r.mu.Lock()
	r.received = append(r.received, got)
	answer := r.answer
	r.mu.Unlock()
	code, contentType, body := answer(got)
	w.Header().Set("Content-Type", contentType)
	if r.encoding != "" {
		w.Header().Set("Content-Encoding", r.encoding)
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

// replyWith is a chat completion.
func replyWith(text string) func(received) (int, string, string) { return apis[0].replyWith(text) }

func (r *rig) answers(f func(received) (int, string, string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

// seen is what the client saw.
type seen struct {
	code     int
	status   Status
	memories string
	body     string
	header   http.Header
}

// post sends a body with the header pairs and returns what came back; sent()
// tells what went upstream.
func (r *rig) post(body string, header ...string) seen {
	r.t.Helper()
	return r.postTo(r.path, body, header...)
}

func (r *rig) postTo(path, body string, header ...string) seen {
	r.t.Helper()
	req, err := http.NewRequest("POST", r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	r.posted++
	req.Header.Set("Authorization", "Bearer sk-rig")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	r.settle() // turns are persisted in the order of posts
	return seen{resp.StatusCode, Status(resp.Header.Get(headerStatus)), resp.Header.Get(headerMemories), string(b), resp.Header}
}

// sent returns the requests that reached the upstream since the last call.
func (r *rig) sent() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.received
	r.received = nil
	return out
}

// one is the only request since the last call.
func (r *rig) one() received {
	r.t.Helper()
	got := r.sent()
	if len(got) != 1 {
		r.t.Fatalf("upstream got %d requests, want 1", len(got))
	}
	return got[0]
}

// fakeRecall answers every search with memories and counts.
type fakeRecall struct {
	mu       sync.Mutex
	memories []storage.Memory
	err      error
	do       func()
	requests []recall.Request
}

func (f *fakeRecall) Recall(_ context.Context, q recall.Request) (recall.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.Previous != nil { // which must not be asked for later
		previous := q.Previous()
		q.Previous = func() string { return previous }
	}
	q.VisibleChains = slices.Clone(q.VisibleChains) // lent until then
	f.requests = append(f.requests, q)
	if f.do != nil {
		f.do()
	}
	var res recall.Result
	for _, m := range f.memories {
		if _, seen := q.VisibleIDs[m.ID]; seen {
			continue
		}
		if m.Provenance.Chain != "" && visible(q, m.Provenance.Chain) {
			continue
		}
		res.Memories = append(res.Memories, recall.Scored{Memory: m, Score: 1})
	}
	return res, f.err
}

// visible says whether q names the turn with this chain as one that the request
// carries.
func visible(q recall.Request, chain string) bool {
	return slices.ContainsFunc(q.VisibleChains, func(c [16]byte) bool { return hex.EncodeToString(c[:]) == chain })
}

func (f *fakeRecall) Loaded(storage.Scope) (bool, time.Time) { return true, time.Time{} }

func (f *fakeRecall) set(texts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memories = nil
	for i, text := range texts {
		f.memories = append(f.memories, storage.Memory{
			ID: fmt.Sprintf("m%d-%s", i, text), Text: text, Kind: storage.KindEpisode, Trust: 1,
			EventTime:  storage.TimeOf(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)),
			Provenance: storage.Provenance{Turn: "t", Role: storage.RoleUser},
		})
	}
}

func (f *fakeRecall) asked() []recall.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

// fakePersist keeps what it is handed.
type fakePersist struct {
	mu    sync.Mutex
	turns []persist.Turn
	err   error
}

func (f *fakePersist) Enqueue(t persist.Turn) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	f.turns = append(f.turns, t)
	return nil
}

// settle waits until every finished answer has been read.
func (r *rig) settle() {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if r.served.Load() == r.posted && len(r.h.assembler.queue) == 0 && r.h.tees.used.Load() == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal("answers were not read in time")
		}
		time.Sleep(time.Millisecond)
	}
}

// turns returns the persisted turns since the last call.
func (r *rig) turns() []persist.Turn {
	r.settle()
	r.persist.mu.Lock()
	defer r.persist.mu.Unlock()
	out := r.persist.turns
	r.persist.turns = nil
	return out
}

// profileOf returns the profile of the client with this User-Agent.
func profileOf(agent string, clients ...identity.Client) *identity.Profile {
	return identity.New(identity.DefaultConfig(), clients).Profile(http.Header{"User-Agent": {agent}}, nil)
}
