package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fakeGateway is a Memory Gateway that answers each path below it as it is
// told, and counts what it is asked.
type fakeGateway struct {
	*httptest.Server
	answer func(w http.ResponseWriter, path string)
	asked  atomic.Int64 // searches
}

func newFakeGateway(t *testing.T, answer func(w http.ResponseWriter, path string)) *fakeGateway {
	g := &fakeGateway{answer: answer}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/memories/search" {
			g.asked.Add(1)
		}
		g.answer(w, r.URL.Path)
	}))
	t.Cleanup(g.Close)
	return g
}

// startWithGateway starts a Remora whose memory is with a gateway.
func startWithGateway(t *testing.T, url string, env ...string) *observedRemora {
	t.Helper()
	o := startObserved(t, append([]string{
		"REMORA_MEMORY_MODE", "gateway", "REMORA_GATEWAY_BASE_URL", url, "REMORA_GATEWAY_USER_ID", "ines", "REMORA_GATEWAY_USER_KEY", "gateway-key",
	}, env...)...)
	o.run()
	return o
}

// shows waits until lines are among the metrics.
func (o *observedRemora) shows(lines ...string) {
	o.t.Helper()
	for _, line := range lines {
		eventually(o.t, line, func() bool {
			_, text := o.get(o.health + "/metrics")
			return strings.Contains(text, "\n"+line+"\n")
		})
	}
}

// Turns that a gateway does not take are accepted and lost: in the metrics, in
// what is warned of, and in the last line of the log.
func TestTurnsThatAGatewayRefuses(t *testing.T) {
	gateway := newFakeGateway(t, func(w http.ResponseWriter, path string) {
		if path == "/memories/add" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"results":[]}`)
	})
	o := startWithGateway(t, gateway.URL)
	for _, conversation := range []string{"a", "b", "c"} {
		o.chat("fake-1", false, "My falcon is called Perdita.", "Authorization", "Bearer sk-owner-of-the-falcon", "X-Remora-Conversation", conversation)
	}
	o.shows("remora_turns_accepted_total 3", `remora_turns_lost_total{remora_reason="gateway"} 3`, "remora_turns_indexed_total 0")
	if n := o.sys.losses()["gateway"]; n != 3 { // what the log warns of
		t.Errorf("%d losses, want 3", n)
	}
	o.stop()
	if _, last, _ := strings.Cut(o.log.String(), `"msg":"stopped"`); !strings.Contains(last, `"gateway":{"recalls":3,"accepted":3,"added":0,"flushed":0,"lost":3,"skipped":0}`) {
		t.Errorf("the last line says %s", last)
	}
}

// A gateway that hangs costs three requests the time for a search, and further
// ones nothing. The metrics say so, until it answers again.
func TestGatewayThatHangs(t *testing.T) {
	hang := make(chan struct{})
	var hangs atomic.Bool
	hangs.Store(true)
	gateway := newFakeGateway(t, func(w http.ResponseWriter, _ string) {
		if hangs.Load() {
			<-hang
		}
		_, _ = io.WriteString(w, `{"results":[]}`)
	})
	release := sync.OnceFunc(func() { close(hang) })
	t.Cleanup(release)
	o := startWithGateway(t, gateway.URL, "REMORA_GATEWAY_RECALL_TIMEOUT", "300ms")
	o.shows("remora_gateway_failing 0")
	conversations := 0
	says := func() string {
		conversations++
		return o.chat("fake-1", false, "What is my falcon called?", "Authorization", "Bearer sk-owner-of-the-falcon", "X-Remora-Conversation", strconv.Itoa(conversations))
	}
	for range 3 {
		if status := says(); status != "timeout" {
			t.Errorf("status %q, want timeout", status)
		}
	}
	asked := gateway.asked.Load()
	for range 3 {
		if status := says(); status != "unavailable" {
			t.Errorf("status %q, want unavailable", status)
		}
	}
	if n := gateway.asked.Load(); n != asked {
		t.Errorf("%d more searches are made", n-asked)
	}
	o.shows("remora_gateway_failing 1", `remora_recall_searches_total{remora_outcome="timeout"} 3`, `remora_recall_searches_total{remora_outcome="failed"} 3`)
	hangs.Store(false)
	release()
	eventually(t, "it is asked again", func() bool { return says() == "empty" })
	o.shows("remora_gateway_failing 0")
}
