package httpclient

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// Whatever an upstream answers, the next request gets its own answer
// (http.Transport can't promise that; see newTransport): nothing of the first,
// surplus, unfinished or unasked for, becomes a part of the second.
func TestClientNothingSpillsOver(t *testing.T) {
	for i, raw := range append(rawResponses,
		h1OK+"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: 1\r\n\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\rContent-Length: 4\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, close\r\n\r\nok",
	) {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			t.Run(fmt.Sprintf("%d/%s", i, method), func(t *testing.T) {
				t.Parallel()
				addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
					for {
						r, err := http.ReadRequest(br)
						if err != nil {
							return
						}
						_, _ = io.Copy(io.Discard, r.Body)
						if r.URL.Path == "/next" {
							_, _ = io.WriteString(conn, h1OK)
							continue
						}
						_, _ = io.WriteString(conn, raw)
						_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // who reads to the end gets there
					}
				})
				up := h1Upstream(t, addr, true, nil)
				_, _, _ = h1Do(t, up, method+" /first HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
				code, body, err := h1Do(t, up, "GET /next HTTP/1.1\r\nHost: x\r\n\r\n")
				if code != 200 || body != "ok" || err != nil {
					t.Errorf("%.100q\nthe next request got %d, %q, %v", raw, code, body, err)
				}
			})
		}
	}
}

// An upstream that says nothing but that it is at it is given up on, and its
// words are bounded.
func TestClientInformationalFlood(t *testing.T) {
	for _, own := range []bool{true, false} {
		addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
			if _, err := http.ReadRequest(br); err != nil {
				return
			}
			for hint := "HTTP/1.1 103 Early Hints\r\nLink: </" + strings.Repeat("a", 8<<10) + ">\r\n\r\n"; ; {
				if _, err := io.WriteString(conn, hint); err != nil {
					return
				}
			}
		})
		up := h1Upstream(t, addr, own, nil)
		in, body := h1Incoming(t, h1Get)
		w := &hints{ResponseWriter: httptest.NewRecorder()}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if resp, err := up.RoundTrip(w, in.WithContext(ctx), body); err == nil {
			resp.Body.Close()
			t.Errorf("own=%v: got %d", own, resp.StatusCode)
		} else if ctx.Err() != nil {
			t.Errorf("own=%v: it goes on forever", own)
		}
		cancel()
	}
}

// Requests that are cancelled at any moment, on connections that are reused,
// never give their answer to others, and leave nothing behind.
func TestClientCancelledRequestsStayApart(t *testing.T) {
	addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
		for {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			answer := r.URL.Path + string(b)
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			if _, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(answer), answer); err != nil {
				return
			}
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			if _, err := fmt.Fprintf(conn, "0\r\nX-Path: %s\r\n\r\n", r.URL.Path); err != nil {
				return
			}
		}
	})
	before := runtime.NumGoroutine()
	up := h1Upstream(t, addr, true, nil)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				id := fmt.Sprintf("/%d-%d", worker, i)
				in, _ := http.ReadRequest(bufio.NewReader(strings.NewReader("POST " + id + " HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(1500))*time.Microsecond)
				if i%3 == 0 {
					ctx = t.Context()
				}
				body := NewBody(nil, []byte("abc"))
				if i%2 == 0 {
					body = StreamBody(io.NopCloser(strings.NewReader("abc")), 3)
				}
				code, got, err := h1Send(up, in.WithContext(ctx), body)
				if err == nil && (code != 200 || got != id+"abc") || err != nil && got != "" && !strings.HasPrefix(id+"abc", got) {
					t.Errorf("%s got %d, %q, %v", id, code, got, err)
				}
				if err != nil && i%3 == 0 {
					t.Errorf("%s, which nobody cancelled: %v", id, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	up.closeIdle()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before+2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// A connection that is reset tells so once. Whoever meets that while waiting
// for more must not let the body, which the connection's end would end, look
// whole.
func TestClientResetIsNoEnd(t *testing.T) {
	reset := make(chan struct{})
	addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
		_, _ = http.ReadRequest(br)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\npart")
		<-reset
		_ = conn.(*net.TCPConn).SetLinger(0)
	})
	up := h1Upstream(t, addr, true, nil)
	in, body := h1Incoming(t, h1Get)
	resp, err := up.RoundTrip(httptest.NewRecorder(), in, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := resp.Body.(*responseBody)
	if _, err := io.ReadFull(b, make([]byte, len("part"))); err != nil {
		t.Fatal(err)
	}
	close(reset)
	b.Await(false)
	if rest, err := io.ReadAll(b); err == nil {
		t.Errorf("the body ended with %q and without an error", rest)
	}
}
