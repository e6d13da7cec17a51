package proxy

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// clientOf speaks one protocol.
func clientOf(t *testing.T, http2 bool) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestPauseOfTheUpstream: the bound on a client that takes nothing is none on
// an upstream that says nothing in the midst of an answer.
func TestPauseOfTheUpstream(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(w, strings.Repeat("x", 2*unguarded))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(300 * time.Millisecond)
			}
		}))
		p := hopPlane(t, up)
		p.stream.WriteIdle = 100 * time.Millisecond
		done := make(chan relayed, 1)
		door := hopServe(t, hop{p: p, done: func(r relayed) { done <- r }})
		resp, err := clientOf(t, http2).Get("http://" + door)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if r := wait(t, done); err != nil || len(body) != 6*unguarded || !r.Complete {
			t.Errorf("HTTP/2 %v: %d bytes, %v; relayed %+v", http2, len(body), err, r)
		}
	}
}

// TestLogTellsWhoTakesNothing: a client that was ended for taking nothing is
// not said to have left.
func TestLogTellsWhoTakesNothing(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		for name, want := range map[string]string{"stays": "client took nothing", "leaves": "client left"} {
			log := &lines{}
			r := newRig(t, func(c *Config, d *Deps) {
				d.Log = slog.New(slog.NewTextHandler(log, nil))
				c.Streams.WriteIdle = 200 * time.Millisecond
				if name == "leaves" {
					c.Streams.WriteIdle = patience
				}
			})
			r.answers(func(received) (int, string, string) { return 200, "text/plain", strings.Repeat("x", 32<<20) })
			resp, err := clientOf(t, http2).Get(r.url + "/v1/models")
			if err != nil {
				t.Fatal(err)
			}
			if name == "leaves" {
				_ = resp.Body.Close()
			}
			for deadline := time.Now().Add(patience); !strings.Contains(log.String(), "msg=exchange") && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if got := log.String(); !strings.Contains(got, `failed="`+want+`"`) {
				t.Errorf("HTTP/2 %v, a client that %s: the log says\n%s", http2, name, got)
			}
			_ = resp.Body.Close()
		}
	}
}
