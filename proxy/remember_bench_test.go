package proxy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// givenRecall finds the same memories each time, and costs nothing.
type givenRecall struct{ result recall.Result }

func (g *givenRecall) Recall(_ context.Context, q recall.Request) (recall.Result, error) {
	res := g.result
	res.Memories = append(q.Into[:0], g.result.Memories...)
	return res, nil
}
func (g *givenRecall) Loaded(storage.Scope) (bool, time.Time) { return true, time.Time{} }

// BenchmarkRemember is what memory costs a request on top of recall itself and
// of the hop: from the body to the insertions, and the entry in the ledger.
// Every request is a new turn.
func BenchmarkRemember(b *testing.B) {
	b.Run("1KiB", func(b *testing.B) { benchmarkRemember(b, "") })
	paragraph := strings.Repeat(`I told my sister about the boat. \"We moved the garden near the harbour.\" Next month we visit the old mill.\n`, 36)
	b.Run("256KiB", func(b *testing.B) {
		benchmarkRemember(b, strings.Repeat(`{"role":"user","content":"`+paragraph+`"},{"role":"assistant","content":"`+paragraph+`"},`, 33))
	})
}

// benchmarkRemember puts history between the system prompt and the question.
func benchmarkRemember(b *testing.B, history string) {
	h := benchHandler(b, "http://127.0.0.1:1")
	text := `{"model":"m","messages":[{"role":"system","content":"` + strings.Repeat("Be brief and kind. ", 40) +
		`"},` + history + `{"role":"user","content":"Where is the meeting of number 000000000000?"}]}`
	digits := strings.Index(text, "000000000000")
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://127.0.0.1/v1/chat/completions", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer key-of-a-user-0123456789")
	r.Header.Set("X-Remora-User", "u")
	body := []byte(text)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		copy(body[digits:], fmt.Sprintf("%012d", n))
		x := exchanges.Get().(*httpExchange)
		x.call = call{h: h, r: r, ctx: b.Context(), start: h.deps.Now(), up: h.plane.choose(r)}
		x.head()
		raw := newBody(&h.bodies)
		raw.bytes = body
		x.body.raw = raw
		if x.remember(&x.body); len(x.plan.inserts) != 1 {
			b.Fatalf("%d insertions, status %s", len(x.plan.inserts), x.plan.status)
		}
		x.accept()
		raw.bytes = nil
		x.release()
		x.recycle()
	}
}

// benchHandler is a Handler before upstream that recalls eight memories for each request.
func benchHandler(b *testing.B, upstream string) *Handler {
	b.Helper()
	var found recall.Result
	for i := range 8 {
		found.Memories = append(found.Memories, recall.Scored{Memory: storage.Memory{
			ID: fmt.Sprintf("f%031d", i), Text: fmt.Sprintf("Please remember that the meeting number %d is on Thursday near the old harbour. My sister likes the blue one.", i),
			Kind: storage.KindEpisode, EventTime: 1_780_000_000_000, Provenance: storage.Provenance{Role: storage.RoleUser},
		}})
	}
	cfg := DefaultConfig()
	cfg.Upstreams = []httpclient.UpstreamConfig{{Name: "mock", URL: upstream, Paths: []string{"/"}}}
	cfg.Identity.Loopback = true
	h, err := New(cfg, Deps{Recall: &givenRecall{found}, Local: storagetest.Memory(), Redact: func(s string) string { return s }})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	return h
}
