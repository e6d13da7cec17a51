package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// Answers are read after assemblyDelay, at once where a queue could not take
// what comes meanwhile, and all of them at the end.
func TestAssemblyDelay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		queue   int
		answers int
		cut     bool // the handler ends meanwhile
		want    time.Duration
	}{
		{"one", 32, 1, false, assemblyDelay},
		{"several", 32, 5, false, assemblyDelay},
		{"a queue without room", 7, 1, false, 0},
		{"the end", 32, 1, true, assemblyDelay / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &Handler{cfg: DefaultConfig(), tees: budget{limit: 1 << 20}}
				h.cfg.Limits.Assemblies = tt.queue
				a := newAssembler(h)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { a.run(ctx); close(done) }()
				synctest.Wait()
				for range tt.answers {
					reply := &tee{limit: 1 << 20, budget: &h.tees}
					reply.write([]byte(`{"choices":[]}`))
					a.submit(&answer{d: dialect.Chat{}, header: http.Header{}, tee: reply})
				}
				time.Sleep(tt.want - 1)
				synctest.Wait()
				if tt.want > 0 && h.tees.used.Load() == 0 {
					t.Errorf("read before %v", tt.want)
				}
				if tt.cut {
					stop()
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if h.tees.used.Load() != 0 {
					t.Errorf("not read after %v", tt.want)
				}
				stop()
				<-done
			})
		})
	}
}

// Answers that are read for telemetry alone take half of the queue at most, and
// no turn is missing when they can't be read.
func TestAnswersForTelemetry(t *testing.T) {
	h := &Handler{cfg: DefaultConfig(), tees: budget{limit: 1 << 20}}
	h.cfg.Limits.Assemblies = 4
	a := newAssembler(h)
	submit := func(persist bool) {
		reply := &tee{limit: 1 << 20, budget: &h.tees}
		reply.write([]byte("not zstd"))
		a.submit(&answer{d: dialect.Chat{}, header: http.Header{"Content-Encoding": {"unknown"}}, tee: reply, persist: persist, needed: persist})
	}
	for range 5 {
		submit(false)
	}
	if n := len(a.queue); n != 2 || h.stats.TurnsLost.Load() != 0 {
		t.Errorf("%d wait and %d turns are lost, want 2 and 0", n, h.stats.TurnsLost.Load())
	}
	for range 3 {
		submit(true)
	}
	if n := len(a.queue); n != 4 || h.stats.TurnsLost.Load() != 1 {
		t.Errorf("then %d wait and %d turns are lost, want 4 and 1", n, h.stats.TurnsLost.Load())
	}
	for len(a.queue) > 0 {
		a.read(<-a.queue)
	}
	if n := h.stats.Undecoded.Load(); n != 2 {
		t.Errorf("%d turns can't be decoded, want 2", n)
	}
}

// beforeEnd returns a stream without the event that tells its end, and what
// follows.
func beforeEnd(stream string) string {
	for _, end := range []string{`"finish_reason":"stop"`, `"stop_reason":"end_turn"`, `"type":"response.completed"`, `"done":true`, `"finishReason":"STOP"`} {
		if i := strings.Index(stream, end); i >= 0 {
			stream = stream[:i]
			cut := strings.LastIndex(stream, "\n\n") + 2
			if cut < 2 {
				cut = strings.LastIndex(stream, "\n") + 1
			}
			return stream[:cut]
		}
	}
	panic("the stream has no end")
}

// A stream that said it was at its end is a turn, though the upstream closed it
// uncleanly behind that; one that was cut is none.
func TestUncleanEnds(t *testing.T) {
	_, whole := chatStream("fine")
	for _, tt := range []struct {
		body string
		want int
	}{{whole, 1}, {strings.TrimSuffix(whole, "data: [DONE]\n\n"), 1}, {beforeEnd(whole), 0}} {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, tt.body)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		defer up.Close()
		r := newRig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = up.URL })
		req, err := http.NewRequest("POST", r.url+r.path, strings.NewReader(chat("user: q")))
		if err != nil {
			t.Fatal(err)
		}
		r.posted++
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != tt.body || err == nil {
			t.Errorf("the client got %q, %v; want all of it, and that it was cut", got, err)
		}
		if got := len(r.turns()); got != tt.want {
			t.Errorf("%d turns, want %d", got, tt.want)
		}
	}
}
