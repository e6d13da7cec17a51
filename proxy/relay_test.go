package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
)

// Each event reaches the client before the upstream sends the next one: the
// upstream waits for the test to say so.
func TestEventsArriveOneByOne(t *testing.T) {
	for _, contentType := range []string{"text/event-stream", "application/x-ndjson", "application/json", "application/octet-stream", ""} {
		for _, framing := range []string{"chunked", "length"} {
			t.Run(contentType+"/"+framing, func(t *testing.T) {
				event := func(i int) string { return fmt.Sprintf("data: {\"n\":%02d}\n\n", i) }
				const events = 5
				next := make(chan struct{})
				up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header()["Content-Type"] = nil
					if contentType != "" {
						w.Header().Set("Content-Type", contentType)
					}
					if framing == "length" {
						w.Header().Set("Content-Length", fmt.Sprint(events*len(event(0))))
					}
					_ = http.NewResponseController(w).Flush()
					for i := range events {
						select {
						case <-next:
						case <-r.Context().Done():
							return
						}
						_, _ = io.WriteString(w, event(i))
						_ = http.NewResponseController(w).Flush()
					}
				}))
				var teed bytes.Buffer
				done := make(chan relayed, 1)
				door := hopServe(t, hop{p: hopPlane(t, up), sink: func(p []byte) { teed.Write(p) }, done: func(r relayed) { done <- r }})
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+door+"/v1/chat/completions", strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := http.DefaultClient.Do(req) // the head comes before any event
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				var all strings.Builder
				for i := range events {
					next <- struct{}{}
					buf := make([]byte, len(event(i)))
					if _, err := io.ReadFull(resp.Body, buf); err != nil {
						t.Fatal(err)
					}
					if got, want := string(buf), event(i); got != want {
						t.Fatalf("got %q, want %q", got, want)
					}
					all.Write(buf)
				}
				if _, err := resp.Body.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("at the end: got %v, want EOF", err)
				}
				r := wait(t, done)
				if !r.Complete || r.Failed != failedNone || r.Bytes != int64(all.Len()) || r.FirstByte.IsZero() || r.Status != 200 {
					t.Errorf("got %+v", r)
				}
				if got, want := teed.String(), all.String(); got != want {
					t.Errorf("sink: got %q, want %q", got, want)
				}
			})
		}
	}
}

func TestPanicInSinkIsNotTheClients(t *testing.T) {
	body := strings.Repeat("x", 200<<10)
	up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) }))
	calls := 0
	done := make(chan relayed, 1)
	door := hopServe(t, hop{p: hopPlane(t, up), sink: func([]byte) { calls++; panic("sink") }, done: func(r relayed) { done <- r }})
	resp, err := http.Get("http://" + door)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(body))
	}
	if r := wait(t, done); !r.Complete || calls != 1 {
		t.Errorf("got %+v after %d calls of the sink, want complete after 1", r, calls)
	}
}

// An answer that the upstream breaks off must not look whole to the client,
// however its end is marked.
func TestTruncatedUpstream(t *testing.T) {
	for name, answer := range map[string]string{
		"length":            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"length, long":      "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + strings.Repeat("x", 50_000),
		"chunked":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"chunked, in chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\nff\r\nabc",
		"chunked, no bytes": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
			t.Run(name+"/"+proto, func(t *testing.T) {
				up := newCanned(t, map[string]string{"/close": answer})
				done := make(chan relayed, 1)
				door := hopServe(t, hop{p: hopPlane(t, "http://"+up.addr), done: func(r relayed) { done <- r }})
				protocols := new(http.Protocols)
				protocols.SetHTTP1(proto == "HTTP/1.1")
				protocols.SetUnencryptedHTTP2(proto == "HTTP/2.0")
				client := &http.Client{Transport: &http.Transport{Protocols: protocols}, Timeout: patience}
				defer client.CloseIdleConnections()
				resp, err := client.Get("http://" + door + "/close")
				if err == nil {
					if resp.Proto != proto {
						t.Errorf("got %s, want %s", resp.Proto, proto)
					}
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				if err == nil {
					t.Error("the client saw a clean end")
				}
				if r := wait(t, done); r.Complete || r.Failed != failedUpstream || r.Err == nil {
					t.Errorf("got %+v, want failed by the upstream", r)
				}
			})
		}
	}
}

func TestClientLeavingCancelsUpstream(t *testing.T) {
	for _, when := range []string{"before the head", "within the body"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", when, stream), func(t *testing.T) {
				started, cancelled := make(chan struct{}, 1), make(chan struct{})
				up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if when == "within the body" {
						_, _ = io.WriteString(w, "data: 1\n\n")
						_ = http.NewResponseController(w).Flush()
					}
					started <- struct{}{}
					<-r.Context().Done()
					close(cancelled)
				}))
				done := make(chan relayed, 1)
				door := hopServe(t, hop{p: hopPlane(t, up), stream: stream, done: func(r relayed) { done <- r }})
				conn, err := net.Dial("tcp", door)
				if err != nil {
					t.Fatal(err)
				}
				mustWrite(t, conn, "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
				wait(t, started)
				if when == "within the body" {
					if _, err := bufio.NewReader(conn).ReadString('1'); err != nil {
						t.Fatal(err)
					}
				}
				conn.Close()
				wait(t, cancelled)
				if when == "within the body" {
					if r := wait(t, done); r.Complete || r.Failed != failedClient {
						t.Errorf("got %+v, want failed by the client", r)
					}
				}
			})
		}
	}
}

// A client that takes nothing is cut when WriteIdle has passed, and not kept
// for ever with its upstream.
func TestClientThatStopsReading(t *testing.T) {
	up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	p := hopPlane(t, up)
	p.stream.WriteIdle = 100 * time.Millisecond
	done := make(chan relayed, 1)
	door := hopServe(t, hop{p: p, done: func(r relayed) { done <- r }})
	conn, err := net.Dial("tcp", door)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	mustWrite(t, conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if r := wait(t, done); r.Failed != failedClient || !errors.Is(r.Err, os.ErrDeadlineExceeded) {
		t.Errorf("got %+v, want the write deadline", r)
	}
}

// A body that stops coming is given up after ReadIdle; one that merely comes
// slowly is not.
func TestSlowRequestBody(t *testing.T) {
	up := newCanned(t, nil)
	p := hopPlane(t, "http://"+up.addr)
	p.stream.ReadIdle = 400 * time.Millisecond
	for _, stream := range []bool{false, true} {
		door := hopServe(t, hop{p: p, stream: stream})
		resp, body, err := exchangeRaw(t, door, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
		if err != nil || resp.StatusCode != http.StatusRequestTimeout || !strings.Contains(body, "request-timeout") {
			t.Errorf("stream=%v: got %v %q, %v, want a 408", stream, resp, body, err)
		}
	}
	for range 10 { // on a machine that stands still for ReadIdle a body does stop coming
		if slowBody(t, p, up) {
			return
		}
	}
	t.Error("a body that comes slowly is given up")
}

// slowBody sends a body that takes twice ReadIdle, and tells whether it reached
// the upstream.
func slowBody(t *testing.T, p *plane, up *canned) bool {
	t.Helper()
	conn, err := net.Dial("tcp", hopServe(t, hop{p: p}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	mustWrite(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n")
	for range 8 {
		time.Sleep(p.stream.ReadIdle / 4)
		_, _ = io.WriteString(conn, "x") // fails once it is given up
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = conn.Read(make([]byte, 1)) // now it is decided
	select {
	case got := <-up.requests:
		if got.Body != "xxxxxxxx" {
			t.Errorf("got %q, want the whole body", got.Body)
		}
		return true
	default:
		return false
	}
}

// The read deadline of a body must not outlive it: what the server reads then
// is the client leaving.
func TestReadDeadlineEndsWithTheBody(t *testing.T) {
	release := make(chan struct{})
	up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
			_, _ = io.WriteString(w, "late")
		case <-r.Context().Done():
		}
	}))
	p := hopPlane(t, up)
	p.stream.ReadIdle = 50 * time.Millisecond
	door := hopServe(t, hop{p: p})
	time.AfterFunc(4*p.stream.ReadIdle, func() { close(release) })
	resp, body, err := exchangeRaw(t, door, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	if err != nil || resp.StatusCode != 200 || body != "late" {
		t.Errorf("got %v %q, %v, want the late answer", resp, body, err)
	}
}

// One connection to the upstream serves many requests, also after answers
// without a body and refused ones.
func TestUpstreamConnectionsAreReused(t *testing.T) {
	peers := make(chan string, 64)
	up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		peers <- r.RemoteAddr
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/400":
			http.Error(w, "no", http.StatusBadRequest)
		default:
			_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		}
	}))
	door := hopServe(t, hop{p: hopPlane(t, up)})
	seen := map[string]bool{}
	for i := range 12 {
		raw := "POST /" + []string{"", "204", "400"}[i%3] + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("b", 5000)
		if _, _, err := exchangeRaw(t, door, raw); err != nil {
			t.Fatal(err)
		}
		seen[wait(t, peers)] = true
	}
	if len(seen) != 1 {
		t.Errorf("got %d connections, want 1", len(seen))
	}
}

// An upstream that closes a pooled connection must not cost a client its
// request.
func TestPooledConnectionClosedByUpstream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan struct{}, 50)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // one answer a connection, without saying so
				defer func() { _ = conn.Close(); closed <- struct{}{} }()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}()
		}
	}()
	p := hopPlane(t, "http://"+l.Addr().String())
	door := hopServe(t, hop{p: p})
	for i := range 50 {
		resp, body, err := exchangeRaw(t, door, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("request %d: got %v %q, %v", i, resp, body, err)
		}
		wait(t, closed) // what crosses with that, nobody can save
		time.Sleep(5 * time.Millisecond)
	}
}

// TestBodyThatNobodyReads: an answer that has no use for a body does not wait
// for one that never comes.
func TestBodyThatNobodyReads(t *testing.T) {
	r := newRig(t, func(c *Config, _ *Deps) {
		c.Streams.ReadIdle = 100 * time.Millisecond
		c.Upstreams[0].Paths = []string{"/v1/"}
	})
	for _, target := range []string{listener.LivePath, "/elsewhere"} {
		c := dialEarly(t, r)
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", target); err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(c.br); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 ") {
			t.Errorf("%s: got %q, %v, want an answer and the connection's end", target, all, err)
		}
	}
}
