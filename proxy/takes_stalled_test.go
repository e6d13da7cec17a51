package proxy

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
)

// stalling is a connection whose reader takes most bytes, and then nothing
// until it is closed.
type stalling struct {
	net.Conn
	most   int
	closed chan struct{}
	once   sync.Once
}

func (c *stalling) Read(p []byte) (int, error) {
	if c.most <= 0 {
		<-c.closed
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(p[:min(len(p), c.most)])
	c.most -= n
	return n, err
}

func (c *stalling) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// TestConnectionThatTakesNothing: a client's connection that takes nothing
// more, whatever its streams would allow, holds nobody.
func TestConnectionThatTakesNothing(t *testing.T) {
	t.Parallel()
	up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		part := []byte(strings.Repeat("x", 1<<20))
		for range 64 {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	p := hopPlane(t, up)
	p.stream.WriteIdle = 100 * time.Millisecond
	done := make(chan relayed, 1)
	door := hopServe(t, hop{p: p, done: func(r relayed) { done <- r }}, func(c *listener.Config) { c.WriteIdle = p.stream.WriteIdle })
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols,
		HTTP2:     &http.HTTP2Config{MaxReceiveBufferPerConnection: 1 << 28, MaxReceiveBufferPerStream: 1 << 28},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			c := &stalling{Conn: conn, most: 64 << 10, closed: make(chan struct{})}
			t.Cleanup(func() { _ = c.Close() })
			return c, nil
		},
	}
	resp, err := (&http.Client{Transport: transport}).Get("http://" + door)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if r := wait(t, done); r.Failed != failedClient {
		t.Errorf("relayed %+v", r)
	}
}
