package forward

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
)

// clientWire is what a client of a Server speaks: HTTP/1.1 over TCP, or over
// TLS to an intercepted host.
type clientWire struct{ secure bool }

// onEachWire runs test over plain TCP and over TLS.
func onEachWire(t *testing.T, test func(*testing.T, clientWire)) {
	t.Run("plain", func(t *testing.T) { test(t, clientWire{}) })
	t.Run("tls", func(t *testing.T) { test(t, clientWire{secure: true}) })
}

// wireServer is a running server and how to connect to it.
type wireServer struct {
	*listener.Server
	stop    context.CancelFunc
	done    chan error
	address string
	tls     *tls.Config // of clients; nil = plain
}

// serve runs a Server for h until the test ends.
func (w clientWire) serve(t *testing.T, h http.Handler, change func(*listener.Config)) wireServer {
	t.Helper()
	cfg := listener.DefaultConfig()
	cfg.Listen, cfg.Drain = "127.0.0.1:0", time.Second
	if change != nil {
		change(&cfg)
	}
	s := wireServer{}
	if w.secure {
		a, roots := newAuthority(t)
		i := newInterceptor(a, map[string]http.Handler{interceptedHost: h}, cfg, nil)
		s.Server, s.tls = i.server, &tls.Config{RootCAs: roots, ServerName: interceptedHost}
		s.address = acceptAll(t, func(conn net.Conn) { i.take(context.Background(), conn, interceptedHost, func() {}) })
	} else {
		s.Server = listener.New(h, cfg, nil)
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		s.address = s.Addr().String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.done = cancel, make(chan error, 1)
	ended := make(chan struct{})
	go func() { s.done <- s.Serve(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return s
}

// acceptAll calls take with each connection, on a goroutine of its own, and
// returns the address it listens on.
func acceptAll(t *testing.T, take func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { take(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// dial connects to s.
func (s wireServer) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if s.tls == nil {
		return conn
	}
	c := tls.Client(conn, s.tls)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c
}

// tcpOf returns the TCP connection of a connection that dial made.
func tcpOf(conn net.Conn) *net.TCPConn {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	return conn.(*net.TCPConn)
}

// A client that leaves, whether it closes, resets or half-closes its
// connection, ends its request's context. One that sends its next request ahead
// does not.
func TestClientThatLeavesEndsItsRequest(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire clientWire) {
		began, ended := make(chan struct{}, 1), make(chan error, 1)
		release := make(chan struct{})
		s := wire.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			began <- struct{}{}
			select {
			case <-r.Context().Done():
				ended <- r.Context().Err()
			case <-release:
				_, _ = io.WriteString(w, r.URL.Path)
			}
		}), nil)
		const post = "POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"
		for _, leave := range []func(net.Conn){
			func(c net.Conn) { _ = c.Close() },
			func(c net.Conn) { _ = tcpOf(c).Close() },
			func(c net.Conn) { _ = tcpOf(c).SetLinger(0); _ = tcpOf(c).Close() },
			func(c net.Conn) { _ = listener.CloseWrite(c) },
		} {
			conn := s.dial(t)
			mustWrite(t, conn, fmt.Sprintf(post, 0))
			wait(t, began)
			time.Sleep(10 * time.Millisecond)
			leave(conn)
			if err := wait(t, ended); !errors.Is(err, context.Canceled) {
				t.Errorf("the context ended with %v", err)
			}
		}

		conn := s.dial(t)
		br := bufio.NewReader(conn)
		mustWrite(t, conn, fmt.Sprintf(post, 1))
		wait(t, began)
		mustWrite(t, conn, fmt.Sprintf(post, 2))
		for i := 1; i <= 2; i++ {
			time.Sleep(20 * time.Millisecond)
			release <- struct{}{}
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := io.ReadAll(resp.Body); string(b) != fmt.Sprintf("/%d", i) {
				t.Fatalf("got %q", b)
			}
			if i == 1 {
				wait(t, began)
			}
		}
	})
}

// A server that shuts down closes idle connections and lets a request that is
// running finish.
func TestShutdownClosesIdleConnections(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire clientWire) {
		began, release := make(chan struct{}, 1), make(chan struct{})
		s := wire.serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			began <- struct{}{}
			<-release
			_, _ = io.WriteString(w, "done")
		}), func(c *listener.Config) { c.Drain = patience })
		idle, busy := s.dial(t), s.dial(t)
		idleReader, busyReader := bufio.NewReader(idle), bufio.NewReader(busy)
		const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
		mustWrite(t, idle, get)
		wait(t, began)
		release <- struct{}{}
		if resp, err := http.ReadResponse(idleReader, nil); err != nil || resp.Close {
			t.Fatal(err, resp)
		} else if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, busy, get)
		wait(t, began)
		s.stop()
		if _, err := idleReader.ReadByte(); err != io.EOF {
			t.Errorf("the idle connection ended with %v", err)
		}
		close(release)
		resp, err := http.ReadResponse(busyReader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != "done" || !resp.Close {
			t.Errorf("got %q, close %v", b, resp.Close)
		}
		if err := wait(t, s.done); err != nil {
			t.Error(err)
		}
	})
}

// A connection is idle for as long as the configuration allows, whatever
// deadlines earlier requests have set.
func TestIdleTimeoutIgnoresEarlierDeadlines(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire clientWire) {
		s := wire.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctl := http.NewResponseController(w)
			_ = ctl.SetReadDeadline(time.Now().Add(patience))
			_ = ctl.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			b, err := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%d %v", len(b), err)
		}), func(c *listener.Config) { c.IdleTimeout = 300 * time.Millisecond })
		conn := s.dial(t)
		br := bufio.NewReader(conn)
		for range 6 {
			mustWrite(t, conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := io.ReadAll(resp.Body); string(b) != "2 <nil>" {
				t.Fatalf("got %q", b)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if b, err := io.ReadAll(br); err != nil || len(b) > 0 {
			t.Errorf("got %q, %v, want the connection closed", b, err)
		}
	})
}

// A request whose client hangs up in the middle of its body fails with
// io.ErrUnexpectedEOF.
func TestBodyCutShort(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire clientWire) {
		got := make(chan error, 1)
		s := wire.serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			got <- err
		}), nil)
		conn := s.dial(t)
		mustWrite(t, conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\nab")
		time.Sleep(20 * time.Millisecond)
		_ = conn.Close()
		if err := wait(t, got); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
	})
}

// A server over TLS sends close_notify when it closes a connection.
func TestServerSendsCloseNotify(t *testing.T) {
	for _, reason := range []string{"idle", "Connection: close", "shutdown"} {
		t.Run(reason, func(t *testing.T) {
			s := clientWire{secure: true}.serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if reason == "Connection: close" {
					w.Header().Set("Connection", "close")
				}
			}), func(c *listener.Config) {
				if reason == "idle" {
					c.IdleTimeout = 50 * time.Millisecond
				}
			})
			conn := s.dial(t)
			mustWrite(t, conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			br := bufio.NewReader(conn)
			if _, err := http.ReadResponse(br, nil); err != nil {
				t.Fatal(err)
			}
			if reason == "shutdown" {
				s.stop()
			}
			if _, err := br.ReadByte(); err != io.EOF { // without close_notify crypto/tls returns io.ErrUnexpectedEOF
				t.Errorf("got %v, want close_notify", err)
			}
		})
	}
}

// Requests of all common forms arrive whole and in order, however the client
// cuts them into packets or TLS records.
func TestRequestsOfAllForms(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire clientWire) {
		s := wire.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if wire.secure != (r.TLS != nil && r.TLS.HandshakeComplete) {
				t.Errorf("%s: TLS %v", r.Method, r.TLS)
			}
			b, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s %s", r.Method, b)
		}), nil)
		conn := s.dial(t)
		br := bufio.NewReader(conn)
		ask := func(want string, parts ...string) {
			t.Helper()
			for i, p := range parts {
				if i > 0 {
					time.Sleep(5 * time.Millisecond)
				}
				mustWrite(t, conn, p)
			}
			for w := range strings.SplitSeq(want, ",") {
				resp, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Fatal(err)
				}
				if b, _ := io.ReadAll(resp.Body); string(b) != w {
					t.Fatalf("got %q, want %q", b, w)
				}
			}
		}
		const post = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n"
		ask("POST ab", post+"ab")
		ask("POST cd", post, "c", "d")
		ask("POST ef,POST gh,GET ", post+"ef"+post+"gh"+"GET /y HTTP/1.1\r\nHost: h\r\n\r\n")
		ask("POST ij", "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nij\r\n0\r\n\r\n")
		ask("POST kl", post[:20], post[20:]+"kl")
		mustWrite(t, conn, "POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != http.StatusContinue {
			t.Fatalf("got %v, %v, want 100 Continue", resp, err)
		}
		ask("POST mn", "mn")
	})
}
