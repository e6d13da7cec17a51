package httpclient

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// A request that a reused connection lost is sent again only where that is
// safe, and once.
func TestClientSendsAgainOnlyWhatIsSafe(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		again     bool
	}{
		{"get", h1Get, true},
		{"post", h1Post, false},
		{"post with a key", strings.Replace(h1Post, "\r\n\r\n", "\r\nIdempotency-Key: k\r\n\r\n", 1), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen atomic.Int64
			addr := proxytest.ServeConns(t, proxytest.AnswerEach(func(i int, r *http.Request) string {
				if r.URL.Path == "/first" {
					return h1OK
				}
				if seen.Add(1); i == 2 {
					return "" // read, and not answered
				}
				return h1OK
			}))
			up := h1Upstream(t, addr, true, nil)
			if _, _, err := h1Do(t, up, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			_, body, err := h1Do(t, up, tt.raw)
			if tt.again && (err != nil || body != "ok" || seen.Load() != 2) {
				t.Errorf("got %q, %v after %d requests, want it sent again", body, err, seen.Load())
			}
			if !tt.again && (err == nil || seen.Load() != 1) {
				t.Errorf("got %q, %v after %d requests, want an error after one", body, err, seen.Load())
			}
		})
	}
	t.Run("never twice", func(t *testing.T) {
		var seen atomic.Int64
		addr := proxytest.ServeConns(t, proxytest.AnswerEach(func(i int, r *http.Request) string {
			if r.URL.Path == "/first" {
				return h1OK
			}
			seen.Add(1)
			return ""
		}))
		up := h1Upstream(t, addr, true, nil)
		_, _, _ = h1Do(t, up, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, _, err := h1Do(t, up, h1Get); err == nil || seen.Load() != 2 {
			t.Errorf("got %v after %d requests, want an error after 2", err, seen.Load())
		}
		if _, _, err := h1Do(t, up, h1Get); err == nil || seen.Load() != 3 {
			t.Errorf("on a new connection: got %v after %d requests, want an error after 3", err, seen.Load())
		}
	})
	t.Run("not after a byte of an answer", func(t *testing.T) {
		var seen atomic.Int64
		addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
			for _, answer := range []string{h1OK, "HTTP/1.1 2"} {
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				seen.Add(1)
				_, _ = io.WriteString(conn, answer)
			}
		})
		up := h1Upstream(t, addr, true, nil)
		_, _, _ = h1Do(t, up, h1Get)
		if _, _, err := h1Do(t, up, h1Get); err == nil || seen.Load() != 2 {
			t.Errorf("got %v after %d requests, want an error after 2", err, seen.Load())
		}
	})
}

// An answer that nobody asked for must not become the next request's, which may
// be another user's.
func TestClientUnsolicitedAnswer(t *testing.T) {
	evil := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	late := make(chan net.Conn, 8)
	addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
		for {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			answer := h1OK
			if r.URL.Path == "/together" {
				answer += evil
			}
			_, _ = io.WriteString(conn, answer)
			late <- conn
		}
	})
	up := h1Upstream(t, addr, true, nil)
	if _, body, err := h1Do(t, up, "GET /together HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil || body != "ok" {
		t.Fatalf("got %q, %v", body, err)
	}
	wait(t, late)
	if n := len(h1Idle(up)); n != 0 {
		t.Errorf("%d idle connections, want that with a surplus answer closed", n)
	}
	if _, body, err := h1Do(t, up, h1Get); err != nil || body != "ok" {
		t.Fatalf("got %q, %v", body, err)
	}
	conn := wait(t, late)
	idle := h1Idle(up)
	if len(idle) != 1 {
		t.Fatalf("%d idle connections, want 1", len(idle))
	}
	mustWrite(t, conn, evil)
	for deadline := time.Now().Add(patience); idle[0].silent(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the surplus answer does not arrive")
		}
	}
	if _, body, err := h1Do(t, up, h1Get); err != nil || body != "ok" {
		t.Errorf("got %q, %v, want the answer to this request", body, err)
	}
}

// Connections that say that they end, or that stand in the middle of something,
// are not used again.
func TestClientKeepsOnlyCleanConnections(t *testing.T) {
	for _, tt := range []struct {
		answer string
		read   int // bytes of the body, -1 = all
		idle   int
	}{
		{h1OK, -1, 1},
		{h1OK, 0, 1}, // what is here already is no reason to close
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 2, 1},
		{"HTTP/1.1 204 No Content\r\n\r\n", -1, 1},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", -1, 0},
		{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", -1, 0},
		{"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", -1, 1},
		{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", 2, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nok", 0, 0},
		{h1OK + "surplus", -1, 0},
	} {
		hold := make(chan struct{})
		addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
			_, _ = http.ReadRequest(br)
			_, _ = io.WriteString(conn, tt.answer)
			<-hold
		})
		up := h1Upstream(t, addr, true, nil)
		in, body := h1Incoming(t, h1Get)
		resp, err := up.RoundTrip(httptest.NewRecorder(), in, body)
		if err != nil {
			t.Fatal(err)
		}
		if tt.read < 0 {
			_, _ = io.Copy(io.Discard, resp.Body)
		} else {
			_, _ = io.ReadFull(resp.Body, make([]byte, tt.read))
		}
		resp.Body.Close()
		resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
			t.Error("read after Close: no error")
		}
		if got := len(h1Idle(up)); got != tt.idle {
			t.Errorf("%.80q, %d read: got %d idle connections, want %d", tt.answer, tt.read, got, tt.idle)
		}
		close(hold)
	}
}

func TestClientPoolIsBounded(t *testing.T) {
	gone := make(chan struct{}, 16)
	addr := proxytest.ServeConns(t, func(n int, conn net.Conn, br *bufio.Reader) {
		proxytest.AnswerEach(func(int, *http.Request) string { return h1OK })(n, conn, br)
		gone <- struct{}{}
	})
	up := h1Upstream(t, addr, true, func(c *TransportConfig) { c.MaxIdlePerHost = 2 })
	var open []*http.Response
	for range 5 {
		in, body := h1Incoming(t, h1Get)
		resp, err := up.RoundTrip(httptest.NewRecorder(), in, body)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
	}
	for _, resp := range open {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	idle := h1Idle(up)
	if len(idle) != 2 {
		t.Fatalf("got %d idle connections, want 2", len(idle))
	}
	for range 3 {
		wait(t, gone)
	}
	if c := up.plain.idle.take(); c != idle[1] {
		t.Error("the connection used last is not taken first")
	} else {
		up.plain.idle.put(c)
	}
}

// A connection that nobody has used for its time is closed, though nobody asks
// for one.
func TestClientIdleConnectionsEnd(t *testing.T) {
	gone := make(chan struct{}, 1)
	addr := proxytest.ServeConns(t, func(n int, conn net.Conn, br *bufio.Reader) {
		proxytest.AnswerEach(func(int, *http.Request) string { return h1OK })(n, conn, br)
		gone <- struct{}{}
	})
	up := h1Upstream(t, addr, true, func(c *TransportConfig) { c.PlainIdleTimeout = 50 * time.Millisecond })
	if _, _, err := h1Do(t, up, h1Get); err != nil {
		t.Fatal(err)
	}
	wait(t, gone)
	if n := len(h1Idle(up)); n != 0 {
		t.Errorf("%d connections outlive their time", n)
	}
}

// Connections are kept for less time than an upstream keeps them, as soon as
// that is seen, and for the usual time again after a while.
func TestPoolLearnsFromTheUpstream(t *testing.T) {
	p := &pool{timeout: 4 * time.Second}
	for _, step := range []struct{ ended, want time.Duration }{
		{3600 * time.Millisecond, 2700 * time.Millisecond}, {2400 * time.Millisecond, 1800 * time.Millisecond}, {3 * time.Second, 1800 * time.Millisecond}, {time.Millisecond, minKept},
	} {
		if p.endedAfter(step.ended); p.keptFor() != step.want {
			t.Errorf("ended after %s: kept for %s, want %s", step.ended, p.keptFor(), step.want)
		}
	}
	p.learned.Store(time.Now().Add(-relearn).UnixNano())
	if p.keptFor() != p.timeout {
		t.Errorf("kept for %s after a while, want %s", p.keptFor(), p.timeout)
	}
}
