package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// route is how a target is reached.
type route struct {
	addr    string      // that is dialled
	connect string      // host:443 that a CONNECT asks for; "" = none is sent
	tls     *tls.Config // nil = plain HTTP
}

// host is what requests say that they are for.
func (d route) host() string {
	if host, _, err := net.SplitHostPort(d.connect); err == nil {
		return host
	}
	return d.addr
}

// dial opens a connection on which requests can be sent, and ends all its reads
// and writes at deadline.
func (d route) dial(ctx context.Context, deadline time.Time) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	ready, err := d.enter(ctx, conn, deadline)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return ready, nil
}

func (d route) enter(ctx context.Context, conn net.Conn, deadline time.Time) (net.Conn, error) {
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if d.connect != "" {
		if err := requestTunnel(conn, d.connect); err != nil {
			return nil, fmt.Errorf("CONNECT %s: %w", d.connect, err)
		}
	}
	if d.tls == nil {
		return conn, nil
	}
	c := tls.Client(conn, d.tls)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func requestTunnel(conn net.Conn, to string) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		return err
	}
	r := newWireReader(conn, 4<<10)
	h, err := r.head()
	switch {
	case err != nil:
		return err
	case h.status() != 200:
		return fmt.Errorf("status %d", h.status())
	case r.r != r.w: // a TLS server waits for the client
		return fmt.Errorf("%w: bytes after the answer's head", errWire)
	}
	return nil
}
