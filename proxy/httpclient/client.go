package httpclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client speaks HTTP/1.1 without TLS to one upstream, on the caller's
// goroutine. http.Transport hands every exchange to two goroutines of the
// connection and back, which is most of its cost, and each of a thousand
// streams keeps their stacks (docs/decisions/0010-own-http1-client.md).
// net/http parses the responses here too, except ordinary ones (readResponse).
//
// Guarantees:
//
// A request is sent once. It is sent again, on a new connection and at most
// once, only if a reused connection took none of it, or the upstream provably
// did not read it because it was closing the connection (see untaken), or if it
// is safe to repeat (RFC 9110, 9.2.2) and no byte of an answer has arrived.
//
// A pooled connection that has ended, or that has an unsolicited answer, is not
// used.
//
// A connection is pooled only after the body has been read to its end, the
// request has been sent whole, and neither side asked to close it; if the
// request waited for 100 Continue, only if that arrived.
//
// An answer that arrives while the request is being sent is passed on. What the
// socket does not take at once is sent by a goroutine, which ends with the
// request or the connection.
//
// When the request's context ends, the connection is closed.
//
// It is safe for concurrent use.
type client struct {
	host          string // of the Host header
	addr          string // dialed
	dialer        net.Dialer
	headerTimeout time.Duration // 0 = none
	idle          pool
}

// newClient returns the client of an upstream with an http:// URL. It dials
// nothing.
func newClient(u *url.URL, c TransportConfig) (*client, error) {
	host, err := wireHost(u)
	if err != nil {
		return nil, err
	}
	t := &client{host: host, dialer: net.Dialer{Timeout: c.DialTimeout}, headerTimeout: c.ResponseHeaderTimeout}
	t.idle.timeout, t.idle.max = c.PlainIdleTimeout, c.MaxIdlePerHost
	name, port := u.Hostname(), u.Port()
	if !strings.Contains(name, "%") { // except for an IPv6 zone, the Host header is ASCII
		name = (&url.URL{Host: host}).Hostname()
	}
	if port == "" {
		port = "80"
	}
	t.addr = net.JoinHostPort(name, port)
	return t, nil
}

// wireHost returns the Host header of requests to u, as net/http writes it.
func wireHost(u *url.URL) (string, error) {
	var line strings.Builder
	if err := (&http.Request{Method: http.MethodGet, URL: u}).Write(&line); err != nil {
		return "", fmt.Errorf("host: %w", err)
	}
	_, rest, _ := strings.Cut(line.String(), "\r\nHost: ")
	host, _, _ := strings.Cut(rest, "\r\n")
	return host, nil
}

// roundTrip is Upstream.RoundTrip for this upstream: in, cleaned, goes to uri
// with the given body.
//
// The response's body belongs to the caller's goroutine and must be read to its
// end or closed.
func (t *client) roundTrip(w http.ResponseWriter, in *http.Request, uri string, body Body) (*http.Response, error) {
	if !isToken(in.Method) || !isRequestTarget(uri) {
		return nil, ErrBadTarget
	}
	ctx := in.Context()
	for again := false; ; again = true {
		c, err := t.connect(ctx, again)
		if err != nil {
			return nil, err
		}
		reused := c.reused
		resp, sent, err := c.exchange(w, in, newRequest(in, uri, t.host, body))
		switch {
		case err == nil:
			return resp, nil
		case errors.Is(err, ErrSlowBody), errors.Is(err, ErrClientBody):
			return nil, err // these end the context too, and say more
		case ctx.Err() != nil:
			return nil, fmt.Errorf("client left: %w", ctx.Err())
		case reused && !c.answered && (body.stream == nil && (!sent || c.unread) || repeatable(in, body)):
		default:
			return nil, err
		}
	}
}

// connect takes an idle connection. It dials if there is none, or if fresh.
func (t *client) connect(ctx context.Context, fresh bool) (*conn, error) {
	if !fresh {
		if c := t.idle.take(); c != nil {
			return c, nil
		}
	}
	conn, err := t.dialer.DialContext(ctx, "tcp", t.addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("dialled no TCP connection")
	}
	c, err := newH1Conn(t, tcp)
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	return c, nil
}

// repeatable reports whether in may be sent twice, by the rule of
// http.Transport.
func repeatable(in *http.Request, body Body) bool {
	if body.stream != nil {
		return false
	}
	switch in.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return len(in.Header["Idempotency-Key"]) > 0 || len(in.Header["X-Idempotency-Key"]) > 0
}

// isToken reports whether s can be a method or the name of a field (RFC 9110,
// 5.6.2). Over HTTP/2 anything may arrive.
func isToken(s string) bool {
	const (
		low = (1<<10-1)<<'0' | 1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.'
		all = low | (1<<26-1)<<'a' | (1<<26-1)<<'A' | 1<<'^' | 1<<'_' | 1<<'`' | 1<<'|' | 1<<'~'
	)
	for i := range len(s) {
		c := s[i] // a shift by more than the width gives 0
		if (uint64(low)>>c|uint64(all>>64)>>(c-64))&1 == 0 {
			return false
		}
	}
	return s != ""
}

// isRequestTarget reports whether s leaves a request line in one piece.
func isRequestTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return s != ""
}
