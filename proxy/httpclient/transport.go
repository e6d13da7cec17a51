// Package httpclient sends requests to upstreams. It hides how: an HTTP/1.1
// client of our own for plain upstreams, http.Transport for TLS, proxies and
// upgrades.
//
// A Router, opened once from the configuration, chooses the upstream of a
// request by its path and headers; nothing a client sends can name another. The
// head that leaves is the client's without hop-by-hop and X-Remora headers, and
// nothing is added. A request is sent once, and sent again only where that is
// safe. Package proxy calls it, from any number of goroutines.
package httpclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// TransportConfig configures how upstreams are reached.
type TransportConfig struct {
	DialTimeout time.Duration
	TLSTimeout  time.Duration
	// ResponseHeaderTimeout limits the wait from the sent request to the
	// response's head; 0 = no limit. It is long, because a model may think for
	// minutes before it answers. Bodies have no time limit.
	ResponseHeaderTimeout time.Duration
	// IdleTimeout closes TLS connections to an upstream that have not been used
	// for so long. PlainIdleTimeout is the same for plain HTTP, where a new
	// connection costs almost nothing and servers of local models usually hang
	// up after 5 s: a request that crosses with their FIN is lost.
	IdleTimeout      time.Duration
	PlainIdleTimeout time.Duration
	// MaxIdlePerHost limits the idle connections kept to one upstream. More are
	// opened as needed and closed after use. If it is below the concurrency,
	// requests cost handshakes.
	MaxIdlePerHost int
	// ProxyFromEnvironment sends requests to upstreams through HTTP_PROXY,
	// HTTPS_PROXY and NO_PROXY. It is off by default, because these may name
	// this process's own forward listener.
	ProxyFromEnvironment bool
}

// DefaultTransportConfig returns limits that suit hosted and local models
// alike.
func DefaultTransportConfig() TransportConfig {
	return TransportConfig{
		DialTimeout:           10 * time.Second,
		TLSTimeout:            10 * time.Second,
		ResponseHeaderTimeout: 10 * time.Minute,
		IdleTimeout:           90 * time.Second,
		PlainIdleTimeout:      4 * time.Second,
		MaxIdlePerHost:        512,
	}
}

// Validate returns all problems of c, joined.
func (c TransportConfig) Validate() error {
	var errs []error
	for _, d := range [...]struct {
		name  string
		value time.Duration
	}{
		{"dialTimeout", c.DialTimeout}, {"tlsTimeout", c.TLSTimeout},
		{"idleTimeout", c.IdleTimeout}, {"plainIdleTimeout", c.PlainIdleTimeout},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be > 0", d.name))
		}
	}
	if c.ResponseHeaderTimeout < 0 {
		errs = append(errs, errors.New("responseHeaderTimeout: must be >= 0"))
	}
	if c.MaxIdlePerHost <= 0 {
		errs = append(errs, errors.New("maxIdlePerHost: must be > 0"))
	}
	return errors.Join(errs...)
}

// Buffer sizes of one upstream connection of an http.Transport.
const (
	upstreamWriteBuffer = 4 << 10
	upstreamReadBuffer  = 4 << 10
)

// newTransport returns the transport of one upstream. roots nil = the system's
// authorities. Verification cannot be skipped.
//
// It adds nothing to requests, decodes nothing in responses, follows no
// redirect and ignores the environment.
//
// BUG(proxy): over HTTP/1.1, http.Transport returns a connection to its pool
// before it has read what follows an answer without a body, so the surplus of
// an upstream that answers twice may be taken for the next request's answer.
// This cannot happen over HTTP/2, which the hosted APIs speak, or with client.
func newTransport(c TransportConfig, scheme string, roots *x509.CertPool) *http.Transport {
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: c.DialTimeout}).DialContext,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(32)},
		TLSHandshakeTimeout:    c.TLSTimeout,
		ResponseHeaderTimeout:  c.ResponseHeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        c.IdleTimeout,
		MaxIdleConns:           c.MaxIdlePerHost,
		MaxIdleConnsPerHost:    c.MaxIdlePerHost,
		MaxResponseHeaderBytes: 1 << 20,
		WriteBufferSize:        upstreamWriteBuffer,
		ReadBufferSize:         upstreamReadBuffer,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:           30 * time.Second, // a dead connection would take all of its streams down
			PingTimeout:               15 * time.Second,
			MaxReceiveBufferPerStream: 512 << 10,
		},
	}
	if scheme == "http" {
		t.IdleConnTimeout = c.PlainIdleTimeout
	}
	if c.ProxyFromEnvironment {
		t.Proxy = http.ProxyFromEnvironment
		t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
			if r.StatusCode != http.StatusOK {
				return ProxyRefusal(r.StatusCode)
			}
			return nil
		}
	}
	return t
}

// ProxyRefusal is the status with which a proxy of the environment answered
// CONNECT.
type ProxyRefusal int

func (p ProxyRefusal) Error() string { return "the proxy answers " + strconv.Itoa(int(p)) }

// newUpgradeTransport is newTransport for requests that leave HTTP: over
// HTTP/1.1, and never pooled afterwards.
func newUpgradeTransport(c TransportConfig, scheme string, roots *x509.CertPool) *http.Transport {
	t := newTransport(c, scheme, roots)
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// Errors of RoundTrip besides the transport's own.
var (
	ErrBadTarget   = errors.New("request target has no path")
	ErrBadResponse = errors.New("upstream answered with a status out of place")
	ErrNotHTTP     = errors.New("upstream answered with no HTTP")
)

// RoundTrip sends in with the given body to the upstream and returns the
// response's head. Informational responses go to w meanwhile. The upstream is
// cancelled when in's context ends: at once when the client leaves.
//
// in.Header is cleaned in place and then sent, so the control headers must be
// read before, and changes made before. Nothing may write to it afterwards,
// except a second RoundTrip. The caller closes the response's body.
func (up *Upstream) RoundTrip(w http.ResponseWriter, in *http.Request, body Body) (*http.Response, error) {
	target, ok := up.target(in)
	if !ok || in.Method == http.MethodConnect {
		return nil, ErrBadTarget
	}
	cleanRequest(in.Header)
	if up.plain != nil {
		return up.plain.roundTrip(w, in, target.RequestURI(), body)
	}

	inform := &informer{w: w}
	if in.ProtoAtLeast(1, 1) { // HTTP/1.0 has no informational responses
		inform.trace.Got1xxResponse = inform.got1xx
	}
	var watched *watchedBody
	if body.stream != nil {
		watched = &watchedBody{ReadCloser: body.stream}
		body.stream = watched
	}
	ctx := httptrace.WithClientTrace(in.Context(), &inform.trace)
	out := outgoing(ctx, in, target, body)
	if watched != nil && len(out.Trailer) > 0 {
		watched.trailers = func() { passTrailers(out.Trailer, in.Trailer) }
	}
	resp, err := up.transport.RoundTrip(out)
	inform.stop()
	if err != nil {
		return nil, watched.blame(err)
	}
	if resp.StatusCode < 200 {
		resp.Body.Close()
		return nil, ErrBadResponse
	}
	return resp, nil
}

// Upgrade sends in, a request to leave HTTP, over a connection of its own. The
// body of a response of 101 is an io.ReadWriteCloser. in.Header is cleaned in
// place.
func (up *Upstream) Upgrade(in *http.Request, body Body) (*http.Response, error) {
	target, ok := up.target(in)
	if !ok {
		return nil, ErrBadTarget
	}
	protocol := in.Header["Upgrade"]
	cleanRequest(in.Header)
	in.Header["Connection"], in.Header["Upgrade"] = []string{"Upgrade"}, protocol
	resp, err := up.upgrades.RoundTrip(outgoing(in.Context(), in, target, body))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, ErrBadResponse
	}
	return resp, nil
}

// outgoing returns in as it goes to target.
func outgoing(ctx context.Context, in *http.Request, target url.URL, body Body) *http.Request {
	out := in.WithContext(ctx)
	out.URL, out.Host = &target, ""
	out.Proto, out.ProtoMajor, out.ProtoMinor = "HTTP/1.1", 1, 1
	out.Close = false
	var trailer http.Header
	if len(in.Trailer) > 0 {
		trailer = http.Header{}
		passTrailers(trailer, in.Trailer)
	}
	body.attach(out, trailer)
	return out
}

// watchedBody records why a streamed body broke off. net/http then ends the
// request's context, and the transport reports only that.
type watchedBody struct {
	io.ReadCloser
	trailers func() // called at the end, when they have arrived; may be nil
	err      atomic.Pointer[error]
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF && b.trailers != nil:
		b.trailers()
	case err != nil && err != io.EOF:
		b.err.Store(&err)
	}
	return n, err
}

// blame returns the body's error, or err if there was none.
func (b *watchedBody) blame(err error) error {
	if b != nil {
		if cause := b.err.Load(); cause != nil {
			return *cause
		}
	}
	return err
}

// informer passes informational responses on. The transport calls it from its
// own goroutine, possibly after RoundTrip has returned, when w belongs to
// others.
//
// The transport limits the size of each of them, but not their number. So the
// exchange is abandoned if their heads together exceed the size of one head.
type informer struct {
	mu    sync.Mutex
	w     http.ResponseWriter // nil when stopped
	bytes int                 // of all heads so far
	trace httptrace.ClientTrace
}

func (i *informer) got1xx(code int, header textproto.MIMEHeader) error {
	i.bytes += len("HTTP/1.1 100\r\n\r\n")
	for name, values := range header {
		for _, v := range values {
			i.bytes += len(name) + len(": \r\n") + len(v)
		}
	}
	if i.bytes > maxHead {
		return errHeadTooLarge
	}
	if code == http.StatusContinue {
		return nil // this hop's own server sends it when the body is first read
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.w != nil {
		passInformational(i.w, code, http.Header(header))
	}
	return nil
}

func (i *informer) stop() {
	i.mu.Lock()
	i.w = nil
	i.mu.Unlock()
}

// passInformational writes an informational response.
func passInformational(w http.ResponseWriter, code int, header http.Header) {
	// Only what this response has may appear in it, and it must not appear in
	// the next one.
	h := w.Header()
	kept := maps.Clone(h)
	clear(h)
	for name, values := range header {
		if !hopByHop(name) && !isControl(name) {
			h[name] = slices.Clone(values)
		}
	}
	w.WriteHeader(code)
	clear(h)
	maps.Copy(h, kept)
}
