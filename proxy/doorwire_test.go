//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// wire is what the clients of a door speak: HTTP/1.1 alone, or within TLS.
type wire struct{ secure bool }

// onEachWire runs test for all that clients speak.
func onEachWire(t *testing.T, test func(*testing.T, wire)) {
	t.Run("plain", func(t *testing.T) { test(t, wire{}) })
	t.Run("tls", func(t *testing.T) { test(t, wire{secure: true}) })
}

// served is a server that tests speak to.
type served struct {
	runningServer
	address string
	tls     *tls.Config // of clients; nil = plain
}

// serve runs a server for h, by a door or by net/http alone.
func (w wire) serve(t *testing.T, own bool, h http.Handler, change func(*ServerConfig)) served {
	t.Helper()
	cfg := DefaultServerConfig()
	cfg.Listen, cfg.Drain = "127.0.0.1:0", time.Second
	if change != nil {
		change(&cfg)
	}
	s := served{}
	var decrypt *interceptor
	if w.secure {
		a, roots := authority(t)
		decrypt = newInterceptor(a, map[string]http.Handler{interceptedHost: h}, cfg, nil)
		s.Server, s.tls = decrypt.server, &tls.Config{RootCAs: roots, ServerName: interceptedHost}
		s.address = acceptAll(t, func(conn net.Conn) { decrypt.take(context.Background(), conn, interceptedHost, func() {}) })
	} else {
		s.Server = NewServer(h, cfg, nil)
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		s.address = s.Addr().String()
	}
	s.tunnels = !own
	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.done = cancel, make(chan error, 1)
	ended := make(chan struct{})
	go func() { s.done <- s.Serve(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return s
}

// acceptAll gives each connection to take, on a goroutine of its own, and returns where it listens.
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

// dial connects. Whatever a client speaks, it can close its sending half.
func (s served) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := s.dialBeneath(func(c net.Conn) net.Conn { return c })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// dialBeneath connects by what under makes of the socket.
func (s served) dialBeneath(under func(net.Conn) net.Conn) (net.Conn, error) {
	conn, err := net.Dial("tcp", s.address)
	if err != nil || s.tls == nil {
		return conn, err
	}
	c := tls.Client(under(conn), s.tls)
	if err := c.Handshake(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// socketBeneath is the socket of a connection that dial made.
func socketBeneath(conn net.Conn) *net.TCPConn {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	return conn.(*net.TCPConn)
}

// choppyConn cuts what it sends anew, at random once r is set: TLS records come in pieces and several at a time.
type choppyConn struct {
	net.Conn

	mu    sync.Mutex
	r     *rand.Rand // nil = it does not
	holds bool       // all
	held  []byte
}

func (c *choppyConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held = append(c.held, p...); c.holds || c.r != nil && c.r.IntN(3) == 0 {
		return len(p), nil
	}
	return len(p), c.send()
}

// send sends what is held. Needs c.mu.
func (c *choppyConn) send() error {
	if c.r != nil && len(c.held) > 1 && c.r.IntN(2) == 0 {
		n := 1 + c.r.IntN(len(c.held)-1)
		if _, err := c.Conn.Write(c.held[:n]); err != nil {
			return err
		}
		c.held = c.held[n:]
		time.Sleep(time.Duration(c.r.IntN(1000)) * time.Microsecond)
	}
	_, err := c.Conn.Write(c.held)
	c.held = c.held[:0]
	return err
}

// hold begins to keep all that is sent, chop to cut it; calm ends that and sends what is held.
func (c *choppyConn) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = true
}

func (c *choppyConn) chop(r *rand.Rand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r = r
}

func (c *choppyConn) calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r, c.holds = nil, false
	_ = c.send()
}
