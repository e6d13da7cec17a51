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

// h1Client speaks HTTP/1.1 without TLS to one upstream, on the goroutine of
// whoever asks. http.Transport hands every exchange to two goroutines of the
// connection and back, which is most of what it costs, and each of a thousand
// streams keeps their stacks (docs/decisions/0010-own-http1-client.md).
// Responses are parsed by net/http here too, but for the ordinary ones
// (readResponse).
//
// What holds:
//   - A request goes out once. It is sent again, on a new connection and at most once, only where a reused connection
//     took none of it, or where it is safe to repeat (RFC 9110, 9.2.2) and not a byte of an answer had come.
//   - A pooled connection on which anything but silence waits is not used: its end, or an answer nobody asked for.
//   - A connection is pooled only after the body's end has been read, the request has been sent whole, and neither side
//     asked to close it; where the request waited for 100 Continue, only if that came.
//   - An answer that comes while the request is still being sent is passed on. What the socket does not take at once is
//     sent by a goroutine, which ends with the request, or with the connection.
//   - When the request's context ends, the connection is closed.
//
// It is safe for concurrent use.
type h1Client struct {
	host          string // of the Host header
	addr          string // to dial
	dialer        net.Dialer
	headerTimeout time.Duration // 0 = none
	idle          h1Pool
}

// newH1Client makes the client of an upstream with an http:// URL. It dials
// nothing.
func newH1Client(u *url.URL, c TransportConfig) (*h1Client, error) {
	host, err := wireHost(u)
	if err != nil {
		return nil, err
	}
	t := &h1Client{host: host, dialer: net.Dialer{Timeout: c.DialTimeout}, headerTimeout: c.ResponseHeaderTimeout}
	t.idle.timeout, t.idle.max = c.PlainIdleTimeout, c.MaxIdlePerHost
	name, port := u.Hostname(), u.Port()
	if !strings.Contains(name, "%") { // but for an IPv6 zone, what the Host header says in ASCII
		name = (&url.URL{Host: host}).Hostname()
	}
	if port == "" {
		port = "80"
	}
	t.addr = net.JoinHostPort(name, port)
	return t, nil
}

// wireHost is the Host header of requests to u as net/http writes it.
func wireHost(u *url.URL) (string, error) {
	var line strings.Builder
	if err := (&http.Request{Method: http.MethodGet, URL: u}).Write(&line); err != nil {
		return "", fmt.Errorf("host: %w", err)
	}
	_, rest, _ := strings.Cut(line.String(), "\r\nHost: ")
	host, _, _ := strings.Cut(rest, "\r\n")
	return host, nil
}

// roundTrip is plane.roundTrip for this upstream: in, cleaned, goes to uri with
// the given body.
//
// The response's body belongs to the caller's goroutine and must be read to its
// end or closed.
func (t *h1Client) roundTrip(w http.ResponseWriter, in *http.Request, uri string, body Body) (*http.Response, error) {
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
		resp, sent, err := c.exchange(w, in, newH1Request(in, uri, t.host, body))
		switch {
		case err == nil:
			return resp, nil
		case errors.Is(err, ErrSlowBody), errors.Is(err, ErrClientBody):
			return nil, err // these end the context, too, and tell more
		case ctx.Err() != nil:
			return nil, fmt.Errorf("client left: %w", ctx.Err())
		case reused && !c.answered && (!sent && body.stream == nil || repeatable(in, body)):
		default:
			return nil, err
		}
	}
}

// connect takes an idle connection, or dials where there is none or fresh says
// so.
func (t *h1Client) connect(ctx context.Context, fresh bool) (*h1Conn, error) {
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

// repeatable says whether in may be sent twice. The rule is http.Transport's.
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

// isToken says whether s can be a method, or the name of a field (RFC 9110,
// 5.6.2). Over HTTP/2 anything comes in.
func isToken(s string) bool {
	const (
		low = (1<<10-1)<<'0' | 1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.'
		all = low | (1<<26-1)<<'a' | (1<<26-1)<<'A' | 1<<'^' | 1<<'_' | 1<<'`' | 1<<'|' | 1<<'~'
	)
	for i := range len(s) {
		c := s[i] // what is shifted by more than its width is 0
		if (uint64(low)>>c|uint64(all>>64)>>(c-64))&1 == 0 {
			return false
		}
	}
	return s != ""
}

// isRequestTarget says whether s leaves a request line in one piece.
func isRequestTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return s != ""
}
