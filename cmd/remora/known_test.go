package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// silence persists nothing.
type silence struct{}

func (silence) Enqueue(persist.Turn) error { return nil }

// Hold reaches both that write by themselves of a scope: the index and the
// ledger.
func TestHoldReachesLedger(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
	}))
	defer upstream.Close()
	store, log := storagetest.Memory(), slog.New(slog.DiscardHandler)
	cfg := proxy.DefaultConfig()
	cfg.RecallDeadline, cfg.FirstDeadline = patience, patience // a busy machine must not decide what is answered
	cfg.Identity.Loopback = true
	cfg.Upstreams = []httpclient.UpstreamConfig{{Name: "mock", URL: upstream.URL, Paths: []string{"/"}}}
	index := recall.DefaultConfig()
	index.Deadline, index.FirstDeadline = patience, patience
	known := &knownMemories{Engine: recall.New(index, store, log, nil)}
	h, err := proxy.New(cfg, proxy.Deps{Recall: known.Engine, Persist: silence{}, Local: store, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	known.handler = h
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); h.Run(ctx) }()
	defer func() { stop(); <-ended }()
	ask := func(text string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader([]byte(`{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)))
		r.Header.Set("Content-Type", "application/json")
		r.Host, r.RemoteAddr = "127.0.0.1:4711", "127.0.0.1:4712"
		r.Header.Set("Authorization", "Bearer key-of-somebody")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("answered %d", w.Code)
		}
		if s := w.Header().Get("X-Remora-Status"); s != "empty" {
			t.Fatalf("status %q", s)
		}
	}
	segments := func() []storage.Record {
		t.Helper()
		page, err := store.AllRecords(t.Context(), storage.BucketLedger, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		return page.Records
	}
	until := func(n int) {
		t.Helper()
		for range patience / (10 * time.Millisecond) {
			if len(segments()) >= n {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%d segments, want %d", len(segments()), n)
	}
	ask("one")
	until(1)
	scope := segments()[0].Scope
	release, err := known.PauseWrites(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := known.Engine.PauseWrites(short, scope); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the index is not held: %v", err)
	}
	ask("two")
	time.Sleep(time.Second) // a few of the writer's delays
	if got := len(segments()); got != 1 {
		t.Errorf("%d segments, one of them written while the scope was held", got)
	}
	release()
	until(2)
}
