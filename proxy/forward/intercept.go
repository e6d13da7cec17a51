package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
)

// Intercept is a host whose connections the forward listener decrypts, so that
// memory works there.
type Intercept struct {
	Host string // lower-case DNS name; only port 443
	// Upstream names the configured upstream that gets its requests. "" = the
	// one whose URL has this host or, if there is none, the host itself over
	// HTTPS.
	Upstream string
}

// ParseIntercept reads "host" or "host=upstream".
func ParseIntercept(s string) (Intercept, error) {
	host, up, named := strings.Cut(s, "=")
	if !hostName(host) || named && up == "" {
		return Intercept{}, errors.New(`must be a host name, or "host=upstream"`)
	}
	return Intercept{Host: host, Upstream: up}, nil
}

// interceptor hands decrypted connections to a Server of their own with the
// handler of the reverse listener, so that streams, cancellation and shutdown
// are the same there.
type interceptor struct {
	handlers  map[string]http.Handler // by host
	server    *listener.Server
	conns     *handedOver
	tls       *tls.Config
	timeout   time.Duration // of the handshake
	writeIdle time.Duration // listener.Config.WriteIdle
	log       *slog.Logger
}

func newInterceptor(a *Authority, handlers map[string]http.Handler, sc listener.Config, log *slog.Logger) *interceptor {
	i := &interceptor{handlers: handlers, timeout: sc.HeaderTimeout, writeIdle: sc.WriteIdle, log: log}
	i.conns = &handedOver{conns: make(chan net.Conn), closed: make(chan struct{})}
	i.tls = &tls.Config{
		NextProtos: []string{"h2", "http/1.1"},
		MinVersion: tls.VersionTLS12,
		// The host is the one for which the tunnel was requested. The name in
		// the client's hello is ignored.
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.leaf(hello.Conn.(*interceptedConn).host)
		},
	}
	i.server = listener.NewTLS(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[r.Context().Value(interceptedKey{}).(string)].ServeHTTP(w, r)
	}), sc, i.conns, func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, interceptedKey{}, interceptedHostOf(c))
	}, log)
	return i
}

type interceptedKey struct{}

// take makes conn a TLS server for host and hands it over. It returns once the
// handshake has ended; release is called when the connection is closed.
func (i *interceptor) take(ctx context.Context, conn net.Conn, host string, release func()) {
	c := tls.Server(newInterceptedConn(conn, host, release, i.writeIdle), i.tls)
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		if _, told := errors.AsType[*net.OpError](err); told || errors.As(err, new(tls.AlertError)) {
			i.log.Warn("a client of the forward listener ended its handshake: does it trust the certificate authority? See 'remora ca trust-help'", "host", host)
		}
		_ = c.Close()
		return
	}
	i.conns.deliver(c)
}

// handedOver is a listener whose connections come from the forward listener.
type handedOver struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// deliver hands c to Accept, or closes it after Close.
func (l *handedOver) deliver(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		_ = c.Close()
	}
}

// Accept waits for the next connection.
func (l *handedOver) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *handedOver) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a fixed name: the connections arrived at the forward listener.
func (l *handedOver) Addr() net.Addr { return handedAddr{} }

type handedAddr struct{}

func (handedAddr) Network() string { return "forward" }
func (handedAddr) String() string  { return "forward listener" }

// interceptedConn is the client's end of an intercepted tunnel, below TLS.
type interceptedConn struct {
	net.Conn
	host    string
	release func()
	idle    time.Duration // listener.Config.WriteIdle
}

func newInterceptedConn(conn net.Conn, host string, release func(), idle time.Duration) *interceptedConn {
	return &interceptedConn{Conn: conn, host: host, release: sync.OnceFunc(release), idle: idle}
}

// maxOwnRecord is the maximum size of the records that TLS sends on its own
// account, such as alerts and key updates, in bytes.
const maxOwnRecord = 64

// Write closes the connection if the client does not take a record of TLS's own
// within idle. crypto/tls writes such records while it reads, for instance to
// answer a key update, and neither a read deadline nor the write deadlines of
// responses bound that write.
func (c *interceptedConn) Write(p []byte) (int, error) {
	if len(p) <= maxOwnRecord && c.idle > 0 {
		defer time.AfterFunc(c.idle, func() { _ = c.Conn.Close() }).Stop()
	}
	return c.Conn.Write(p)
}

func (c *interceptedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// interceptedHostOf returns the host for which the client requested a tunnel.
// conn speaks TLS over an interceptedConn.
func interceptedHostOf(conn net.Conn) string {
	return conn.(*tls.Conn).NetConn().(*interceptedConn).host
}
