package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/storage"
)

// principal is one whose memory is separate from everybody else's.
type principal struct {
	number int
	head   http.Header
	user   string // in the body, "" = none
	said   atomic.Int64
}

// lookAlikes returns principals whose keys, users, apps and projects look
// alike, or are alike but for one part, or trade parts.
func lookAlikes(n int) []*principal {
	names := []string{
		"ann", "Ann", "ANN", "ann.", "ann-", "ann/", "ann:1", "a:nn1", "ann|1", "ann\u200b", "\u0430nn", "a\u0308nn", "\u00e4nn", "ann\u00a0x", "key:ann", "name:ann", "local", "default", "installation:ann", "sha256:ann",
		strings.Repeat("ann", 200), strings.Repeat("ann", 200) + "x", "ann,ann", "ann;q=1", "%61nn", "ann%00", "ann#x", "ann x", "ann  x", "tests",
	}
	var out []*principal
	seen := map[string]bool{}
	rng := rand.New(rand.NewPCG(7, 7))
	for len(out) < n {
		p := &principal{number: len(out), head: http.Header{}}
		user, app, project := names[rng.IntN(len(names))], "", ""
		key := "sk-key-of-" + names[rng.IntN(4)] + "-0815"
		if rng.IntN(3) == 0 {
			app = names[rng.IntN(len(names))]
		}
		if rng.IntN(3) == 0 {
			project = names[rng.IntN(len(names))]
		}
		if app == "default" {
			app = ""
		}
		if project == "default" {
			project = ""
		}
		if id := fmt.Sprintf("%q", []string{key, user, app, project}); seen[id] {
			continue
		} else {
			seen[id] = true
		}
		p.head.Set("Authorization", "Bearer "+key)
		if rng.IntN(2) == 0 {
			p.user = user
		} else {
			p.head.Set("X-Remora-User", user)
		}
		if app != "" {
			p.head.Set("X-Remora-App", app)
		}
		if project != "" {
			p.head.Set("X-Remora-Project", project)
		}
		out = append(out, p)
	}
	return out
}

// owners are the marks of what principals said: "zqowner17word".
var owners = regexp.MustCompile(`zqowner(\d+)word`)

// TestLookAlikePrincipals has 200 principals that look alike say and ask things
// in any order, forget and be erased: nobody is ever given another's words. An
// environment variable makes it long.
func TestLookAlikePrincipals(t *testing.T) {
	operations := nightly(t, "REMORA_PRINCIPAL_OPERATIONS", 3000)
	people := lookAlikes(200)
	var foreign, given atomic.Int64
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asking := r.Header.Get("X-Test-Principal")
		for _, m := range owners.FindAllSubmatch(body, -1) {
			given.Add(1)
			if string(m[1]) != asking {
				foreign.Add(1)
				t.Errorf("%s was given what %s said: %s", asking, m[1], body)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"Noted."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(model.Close)
	c := demoConfig(t.TempDir(), model.URL)
	c.Proxy.Identity.Tenant, c.Proxy.Identity.Anonymous, c.Proxy.Identity.Loopback = "key", "off", false
	c.Persist.TurnsPerSecond, c.Persist.QueueTurns = 0, 1<<20
	c.Proxy.RecallDeadline, c.Proxy.FirstDeadline = patience, patience // a busy machine must not decide what is recalled
	sys, err := newSystem(c, slog.New(slog.DiscardHandler), export.Telemetry{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sys.run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var statuses [2]atomic.Int64
	ask := func(p *principal, text string) {
		body, _ := json.Marshal(map[string]any{"model": "m", "messages": []any{demoMessage{"user", text}}})
		if p.user != "" {
			body, _ = json.Marshal(map[string]any{"model": "m", "user": p.user, "messages": []any{demoMessage{"user", text}}})
		}
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
		r.Header = p.head.Clone()
		r.Header.Set("X-Test-Principal", fmt.Sprint(p.number))
		w := httptest.NewRecorder()
		sys.handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("answered %d", w.Code)
		}
		switch status := w.Header().Get("X-Remora-Status"); status {
		case "no-user", "off", "unsupported":
			t.Errorf("%d (%q): %s", p.number, p.head, status)
		case "injected":
			statuses[1].Add(1)
		default:
			statuses[0].Add(1)
		}
	}
	for began := time.Now(); !sys.store.Status().Open; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("the store does not open")
		}
	}
	var next atomic.Int64
	var working sync.WaitGroup
	for worker := range uint64(4) {
		working.Go(func() {
			rng := rand.New(rand.NewPCG(worker, 1))
			for n := next.Add(1); n <= int64(operations) && !t.Failed(); n = next.Add(1) {
				if n%100 == 0 { // storing falls far behind on a busy machine, and then nothing is recalled
					if err := sys.pipeline.Flush(ctx); err != nil {
						t.Errorf("flush: %v", err)
					}
				}
				p := people[rng.IntN(len(people))]
				switch n := rng.IntN(1000); {
				case n < 500:
					ask(p, fmt.Sprintf("My word number %d is zqowner%dword, and I keep it in drawer %d.", p.said.Add(1), p.number, rng.IntN(50)))
				case n < 990:
					ask(p, "What was my word, and in which drawer do I keep it?")
				case n < 999:
					scopes, err := sys.store.Scopes(ctx, "", 0)
					if err != nil || len(scopes.Scopes) == 0 {
						continue
					}
					scope := scopes.Scopes[rng.IntN(len(scopes.Scopes))]
					page, err := sys.store.Scan(ctx, scope, storage.Query{})
					if err == nil && len(page.Memories) > 0 {
						sys.handler.Forget(scope, page.Memories[rng.IntN(len(page.Memories))].ID)
					}
				default:
					scopes, err := sys.store.Scopes(ctx, "", 0)
					if err == nil && len(scopes.Scopes) > 0 {
						scope := scopes.Scopes[rng.IntN(len(scopes.Scopes))]
						if _, err := sys.pipeline.ForgetUser(ctx, scope); err != nil {
							t.Errorf("forget: %v", err)
						}
						sys.handler.Drop(scope)
					}
				}
			}
		})
	}
	working.Wait()
	t.Logf("%d operations of %d principals: %d words given, %d foreign; %d requests with memories, %d without", operations, len(people), given.Load(), foreign.Load(), statuses[1].Load(), statuses[0].Load())
	if statuses[1].Load() < int64(operations)/20 {
		t.Error("hardly anything was recalled: the test shows nothing")
	}
}
