package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
)

// TestUnansweredSocketsAreNotCut: a socket in whose last words nobody can tell
// a question from a sign of life is no failure of the drain, from which the
// exit code is made; one in the midst of an answer is.
func TestUnansweredSocketsAreNotCut(t *testing.T) {
	for _, answering := range []bool{false, true} {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
			if _, err := io.ReadFull(rw.Reader, make([]byte, 8)); err != nil {
				return
			}
			for answering {
				if _, err := io.WriteString(conn, "\x81\x02hi"); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			_, _ = io.Copy(io.Discard, conn)
		}))
		asked := make(chan struct{})
		p := hopPlane(t, upstream.URL)
		cfg := listener.DefaultConfig()
		cfg.Listen, cfg.Drain = "127.0.0.1:0", 2*time.Second
		s := listener.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.upgrade(w, r, p.choose(r), func(ctx context.Context, client, upstream io.ReadWriteCloser) (int64, int64) {
				close(asked)
				return listener.TunnelFor(r)(ctx, client, upstream)
			})
		}), cfg, nil)
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx) }()
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, conn, fmt.Sprintf(upgradeHead, "")+"\x81\x82\x00\x00\x00\x00hi")
		wait(t, asked)
		heard := make(chan []byte, 1)
		go func() { b, _ := io.ReadAll(conn); heard <- b }()
		time.Sleep(100 * time.Millisecond)
		cancel()
		if err := <-ended; (err != nil) != answering {
			t.Errorf("answering %v: the drain ended with %v", answering, err)
		}
		if got := <-heard; !answering && !bytes.HasSuffix(got, []byte("\x88\x02\x03\xe9")) {
			t.Errorf("the client is told %q", got)
		}
		conn.Close()
		upstream.Close()
	}
}
