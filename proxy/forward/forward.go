// Package forward is the forward listener, for clients whose base URL can't be
// changed: an HTTP proxy (HTTPS_PROXY) that accepts CONNECT and nothing else.
// It decides whom it serves and which hosts it decrypts. Decrypted connections
// get certificates of a local authority, which is constrained to the names of
// its hosts, and are served like those of the reverse listener, by a handler
// that the caller gives. All others are tunnelled, byte for byte, to addresses
// on the public internet only, unless private ones are allowed. The number of
// tunnels is bounded. It knows nothing of memory, dialects or upstreams. The
// program runs one Proxy next to the reverse listener; 'remora ca' makes the
// authority.
package forward

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/elazarl/goproxy"

	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/proxy/problem"
	"github.com/remora-proxy/remora/redact"
)

// Config configures the forward listener: whom it serves and where its tunnels
// may lead.
type Config struct {
	// Listen is host:port. Without a Token the host must be a loopback address,
	// because this is not an open proxy.
	Listen string
	// Token is required of every client, as the password of Basic proxy
	// authentication (any user name) or as a Bearer token; "" = not required.
	Token redact.Secret
	// Intercept lists the hosts whose connections are decrypted, with
	// certificates of the local authority. Without an authority, or if its
	// certificate does not cover the host, they are tunnelled.
	Intercept []string
	// Others is how other hosts are handled: OthersTunnel or OthersRefuse.
	Others string
	// AllowPrivate allows tunnels to loopback, private, link-local and other
	// addresses that are not on the public internet. The address that is dialed
	// counts, not its name.
	AllowPrivate bool
	// MaxTunnels limits the open tunnels, of two connections and 64 KiB each.
	// Beyond it, clients are answered 503.
	MaxTunnels  int
	DialTimeout time.Duration
	// Drain is how long tunnels may continue after the listener has closed.
	Drain time.Duration
}

// Values of Config.Others.
const (
	OthersTunnel = "tunnel"
	OthersRefuse = "refuse"
)

// DefaultConfig serves this machine and leads to the public internet. The two
// best-known LLM APIs are intercepted once there is an authority.
func DefaultConfig() Config {
	return Config{
		Listen:      "127.0.0.1:8789",
		Intercept:   []string{"api.openai.com", "api.anthropic.com"},
		Others:      OthersTunnel,
		MaxTunnels:  1024,
		DialTimeout: 10 * time.Second,
		Drain:       5 * time.Second,
	}
}

// Validate returns all problems of c, joined.
func (c Config) Validate() error {
	var errs []error
	host, ok := listener.ParseAddress(c.Listen)
	switch {
	case !ok:
		errs = append(errs, listener.ErrBadAddress)
	case c.Token == "" && !loopbackHost(host):
		errs = append(errs, errors.New("listen: must be a loopback address unless a token is set"))
	}
	if c.Token != "" && len(c.Token) < 16 {
		errs = append(errs, errors.New("token: must have at least 16 characters"))
	}
	if len(c.Intercept) > maxIntercept {
		errs = append(errs, fmt.Errorf("intercept: must hold at most %d hosts", maxIntercept))
	}
	seen := map[string]bool{}
	for n, entry := range c.Intercept {
		i, err := ParseIntercept(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("intercept[%d]: %w", n, err))
		} else if seen[i.Host] {
			errs = append(errs, fmt.Errorf("intercept[%d]: duplicate host", n))
		}
		seen[i.Host] = true
	}
	if c.Others != OthersTunnel && c.Others != OthersRefuse {
		errs = append(errs, errors.New("others: must be tunnel or refuse"))
	}
	if c.MaxTunnels <= 0 {
		errs = append(errs, errors.New("maxTunnels: must be > 0"))
	}
	if c.DialTimeout <= 0 {
		errs = append(errs, errors.New("dialTimeout: must be > 0"))
	}
	if c.Drain < 0 {
		errs = append(errs, errors.New("drain: must be >= 0"))
	}
	return errors.Join(errs...)
}

// loopbackHost accepts addresses only, because the configuration cannot know
// what localhost resolves to.
func loopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Proxy is the forward listener.
//
// It uses goproxy for the CONNECT decision only. It does not use its transport
// and dialers, which follow the environment and may lead back here, its
// tunnels, for which no shutdown waits, and its built-in certificate authority,
// whose key is public.
type Proxy struct {
	cfg     Config
	server  *listener.Server
	connect *goproxy.ProxyHttpServer
	dialer  *net.Dialer
	places  chan struct{} // one element per open tunnel or intercepted connection
	inner   *interceptor  // nil = nothing is intercepted

	failures problem.Counts
}

// Failures adds to by how many requests this listener has refused, by the kind
// of the problem. Those of intercepted connections are not among them.
func (p *Proxy) Failures(by map[string]int64) { p.failures.AddTo(by) }

// New returns a forward listener that does not listen yet. serve returns what
// serves the requests of an intercepted host; if it or authority is nil,
// nothing is intercepted. sc configures those connections; its address is
// ignored, and its limit counts the listener's own as well. log may be nil.
func New(cfg Config, serve func(host, upstream string) (http.Handler, error), authority *Authority, sc listener.Config, log *slog.Logger) (*Proxy, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{cfg: cfg, places: make(chan struct{}, cfg.MaxTunnels)}
	if serve != nil && authority != nil && len(cfg.Intercept) > 0 {
		handlers := map[string]http.Handler{}
		for _, entry := range cfg.Intercept {
			i, err := ParseIntercept(entry)
			if err != nil {
				return nil, fmt.Errorf("configure forward listener: %w", err)
			}
			if !authority.covers(i.Host) {
				log.Warn("the certificate authority is not for this host: it is tunnelled, without memory. See 'remora ca init'", "host", i.Host)
				continue
			}
			if handlers[i.Host], err = serve(i.Host, i.Upstream); err != nil {
				return nil, fmt.Errorf("configure forward listener: %w", err)
			}
		}
		p.inner = newInterceptor(authority, handlers, sc, log)
	}
	p.dialer = &net.Dialer{Timeout: cfg.DialTimeout, ControlContext: p.control}
	// A literal, because goproxy's constructor reads proxies from the
	// environment. Its transport is never used.
	p.connect = &goproxy.ProxyHttpServer{
		Logger: silent{},
		Tr:     &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errForbidden }},
	}
	p.connect.OnRequest().HandleConnectFunc(p.decide)

	own := listener.DefaultConfig()
	own.Listen, own.Drain, own.Limit = cfg.Listen, cfg.Drain, sc.Limit
	p.server = listener.NewTunnels(p, own, log)
	return p, nil
}

// Listen opens the port. It refuses what Validate refuses.
func (p *Proxy) Listen() error {
	if err := p.cfg.Validate(); err != nil {
		return fmt.Errorf("open forward listener: %w", err)
	}
	return p.server.Listen()
}

// Use serves a port that is open already, in place of Listen. It refuses what
// Validate refuses.
func (p *Proxy) Use(l net.Listener) error {
	if err := p.cfg.Validate(); err != nil {
		return fmt.Errorf("use forward listener: %w", err)
	}
	p.server.Use(l)
	return nil
}

// Addr returns the address of the listener, nil before Listen.
func (p *Proxy) Addr() net.Addr { return p.server.Addr() }

// Serve serves until ctx ends. Open tunnels may then continue for Drain, and
// intercepted exchanges as long as those of the reverse listener. See
// [Server.Serve].
func (p *Proxy) Serve(ctx context.Context) error {
	if p.inner == nil {
		return p.server.Serve(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	inner := make(chan error, 1)
	go func() {
		defer stop()
		inner <- p.inner.server.Serve(ctx)
	}()
	err := p.server.Serve(ctx)
	stop()
	return errors.Join(err, <-inner)
}

// ServeHTTP serves one CONNECT.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == listener.LivePath && r.URL.Host == "" && r.Method == http.MethodGet { // asked of this listener, not of a server behind it
		listener.Live(w)
		return
	}
	if !p.authorized(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="remora"`)
		p.refuse(w, problem.New(http.StatusProxyAuthRequired, "forward-auth", "this proxy needs its token as the password"))
		return
	}
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		p.refuse(w, problem.New(http.StatusMethodNotAllowed, "forward-method", "this proxy serves https targets by CONNECT only"))
		return
	}
	select {
	case p.places <- struct{}{}:
	default:
		p.refuse(w, problem.New(http.StatusServiceUnavailable, "forward-busy", "all tunnels of this proxy are in use"))
		return
	}
	t := &forwarding{release: func() { <-p.places }}
	defer t.close()
	p.connect.ServeHTTP(listener.KeepAhead(w), r.WithContext(context.WithValue(r.Context(), forwardingKey{}, t)))
}

// authorized compares hashes, so that timing reveals neither length nor content
// of the token.
func (p *Proxy) authorized(r *http.Request) bool {
	if p.cfg.Token == "" {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Basic"):
		pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(given))
		if err != nil {
			return false
		}
		_, given, _ = strings.Cut(string(pair), ":")
	case !strings.EqualFold(scheme, "Bearer"):
		return false
	}
	want, got := sha256.Sum256([]byte(p.cfg.Token.Reveal())), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// forwarding is a CONNECT that is being served. The handler closes the
// upstream's connection in any case.
type forwarding struct {
	target  net.Conn
	release func() // frees the slot; nil once the intercepted connection will
}

type forwardingKey struct{}

func (t *forwarding) close() {
	if t.target != nil {
		_ = t.target.Close()
	}
	if t.release != nil {
		t.release()
	}
}

// decide is the CONNECT policy. An intercepted host is accepted at once. Any
// other is accepted once its connection is open.
func (p *Proxy) decide(host string, ctx *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
	t, ok := ctx.Req.Context().Value(forwardingKey{}).(*forwarding)
	if !ok {
		return &goproxy.ConnectAction{Action: goproxy.ConnectReject}, host
	}
	if p.intercepts(host) {
		return &goproxy.ConnectAction{Action: goproxy.ConnectHijack, Hijack: p.intercept}, host
	}
	if p.cfg.Others == OthersRefuse {
		ctx.Resp = p.respond(problem.New(http.StatusForbidden, "forward-others", "this proxy serves the hosts of its list only"))
		return &goproxy.ConnectAction{Action: goproxy.ConnectReject}, host
	}
	target, err := p.dialer.DialContext(ctx.Req.Context(), "tcp", host)
	if err != nil {
		ctx.Resp = p.respond(refusal(host, err))
		return &goproxy.ConnectAction{Action: goproxy.ConnectReject}, host
	}
	t.target = target
	return &goproxy.ConnectAction{Action: goproxy.ConnectHijack, Hijack: carryTunnel}, host
}

// intercepts reports whether a CONNECT target is decrypted here.
func (p *Proxy) intercepts(target string) bool {
	host, port, err := net.SplitHostPort(target)
	if err != nil || port != "443" || p.inner == nil {
		return false
	}
	_, listed := p.inner.handlers[strings.TrimSuffix(strings.ToLower(host), ".")]
	return listed
}

// intercept runs in the request's handler until the client's handshake has
// ended.
func (p *Proxy) intercept(r *http.Request, client net.Conn, _ *goproxy.ProxyCtx) {
	t := r.Context().Value(forwardingKey{}).(*forwarding)
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = client.Close()
		return
	}
	host, _, _ := net.SplitHostPort(r.URL.Host)
	release := t.release
	t.release = nil
	p.inner.take(r.Context(), client, strings.TrimSuffix(strings.ToLower(host), "."), release)
}

// carryTunnel runs in the request's handler until the tunnel has ended.
func carryTunnel(r *http.Request, client net.Conn, _ *goproxy.ProxyCtx) {
	t := r.Context().Value(forwardingKey{}).(*forwarding)
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	listener.Tunnel(r.Context(), client, t.target)
}

var errForbidden = errors.New("target address not allowed")

// control is called with the address that is about to be dialed.
func (p *Proxy) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	if p.cfg.AllowPrivate {
		return nil
	}
	target, err := netip.ParseAddrPort(address)
	if err != nil || !public(target.Addr()) {
		return errForbidden
	}
	return nil
}

// refusal returns the problem of a failed CONNECT. It names what the client
// asked for, and no address that it did not.
func refusal(host string, err error) problem.Problem {
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case errors.Is(err, errForbidden):
		return problem.New(http.StatusForbidden, "forward-forbidden", "the target is not on the public internet")
	case errors.As(err, &dns):
		return problem.New(http.StatusBadGateway, "upstream-unreachable", "the name of "+host+" does not resolve")
	case errors.As(err, &netErr) && netErr.Timeout():
		return problem.New(http.StatusGatewayTimeout, "upstream-timeout", "connecting to "+host+" took too long")
	}
	return problem.New(http.StatusBadGateway, "upstream-unreachable", host+" could not be reached")
}

// refuse answers with a problem, and counts it.
func (p *Proxy) refuse(w http.ResponseWriter, why problem.Problem) {
	p.failures.Add(why.Kind())
	why.Write(w)
}

// respond is refuse in the form that goproxy takes.
func (p *Proxy) respond(why problem.Problem) *http.Response {
	p.failures.Add(why.Kind())
	body := why.Encode()
	return &http.Response{
		StatusCode: why.Status, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header:        http.Header{"Content-Type": {"application/problem+json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

// silent drops goproxy's log lines, which quote what clients send.
type silent struct{}

func (silent) Printf(string, ...any) {}
