package page

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage/storagetest"
)

const adminToken = "admin-token-of-the-tests"

// rig is the page in front of a Service whose pipeline runs, with a clock that
// can be moved.
type rig struct {
	*Handler
	service *api.Service
	ahead   time.Duration
}

func newRig(t testing.TB) *rig {
	t.Helper()
	who := identity.DefaultConfig()
	who.Loopback = true
	return newRigOf(t, who)
}

func newRigOf(t testing.TB, who identity.Config) *rig {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store := storagetest.Memory()
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg := recall.DefaultConfig()
	cfg.FirstDeadline, cfg.Deadline = 10*time.Second, 10*time.Second // a busy machine changes no result
	engine := recall.New(cfg, store, log, nil)
	receipts := receipt.NewRecorder(store, time.Hour, log)
	pipeline := persist.New(persist.DefaultConfig(), store, store, engine, red, log, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = pipeline.Run(ctx) })
	running.Go(func() { _ = engine.Run(ctx) })
	running.Go(func() { receipts.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	r := &rig{}
	r.service = api.New(api.Config{Token: adminToken}, api.Deps{
		Store: store, Pipeline: pipeline, Engine: engine, Recall: cfg, Identity: identity.New(who, nil), Policy: policy.New(nil), Receipts: receipts,
		Redact: redact.NewCache(red).Redact, Placeholder: red.IsPlaceholder, Upstreams: []string{"openai"},
		Health: func() api.Health { return api.Health{StoreOpen: true} },
	})
	r.Handler = New(r.service, Options{Log: log, Now: func() time.Time { return time.Now().Add(r.ahead) }})
	return r
}

// send sends a request and returns the answer with its body. form is sent by
// POST if it is not nil.
func (r *rig) send(t testing.TB, target string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, target, nil)
	if form != nil {
		req = httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Host = "127.0.0.1:8788"
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req.WithContext(t.Context()))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

// cookieOf returns the session's cookie of an answer as a header's value.
func cookieOf(t testing.TB, res *http.Response) string {
	t.Helper()
	for _, c := range res.Cookies() {
		if strings.HasPrefix(c.Name, "remora-session") {
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
				t.Errorf("cookie %+v, want HttpOnly, SameSite=Strict and Path=/", c)
			}
			return c.Name + "=" + c.Value
		}
	}
	t.Fatalf("status %d sets no cookie", res.StatusCode)
	return ""
}
