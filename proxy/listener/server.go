// Package listener is what Remora's ports have in common: serving HTTP with
// limits on heads and idle connections, shutdown that waits for exchanges and
// for connections that were taken over, and tunnels, which end once they are
// idle after their listener has closed. It knows nothing of what is served. The
// program opens the reverse listener with it, package forward its own, and
// package proxy takes connections over and carries upgrades.
package listener

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// Config configures a listener.
type Config struct {
	// Listen is host:port.
	Listen string
	// HeaderTimeout limits the reading of a request's head, IdleTimeout the
	// wait for the next request on a connection. The latter is longer than
	// usual clients keep their connections, so that they hang up first. Bodies
	// are only limited in how long they may pause (proxy.StreamConfig), not in
	// total.
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration
	// WriteIdle closes an HTTP/2 connection that takes nothing for so long
	// while something waits to be sent, because a reset of one of its streams
	// could not be sent either. It is proxy.StreamConfig.WriteIdle, which
	// limits answers. 0 = no limit.
	WriteIdle time.Duration
	// MaxHeaderBytes is the maximum size of a request's head.
	MaxHeaderBytes int
	// Limit bounds what this listener and others serve at the same time; nil =
	// no limit.
	Limit *Limit
	// Drain is how long exchanges in progress may continue after the listener
	// has closed. What is left is then cut.
	Drain time.Duration
}

// DefaultWriteIdle is the default of Config.WriteIdle, which is also the limit
// of an answer.
const DefaultWriteIdle = 5 * time.Minute

// DefaultConfig listens on loopback.
func DefaultConfig() Config {
	return Config{
		Listen:         "127.0.0.1:8787",
		HeaderTimeout:  10 * time.Second,
		IdleTimeout:    3 * time.Minute,
		WriteIdle:      DefaultWriteIdle,
		MaxHeaderBytes: 1 << 20,
		Drain:          25 * time.Second, // a pod is given 30 s
	}
}

// Validate returns all problems of c, joined.
func (c Config) Validate() error {
	var errs []error
	if _, ok := ParseAddress(c.Listen); !ok {
		errs = append(errs, ErrBadAddress)
	}
	if c.HeaderTimeout <= 0 {
		errs = append(errs, errors.New("headerTimeout: must be > 0"))
	}
	if c.IdleTimeout <= 0 {
		errs = append(errs, errors.New("idleTimeout: must be > 0"))
	}
	if c.MaxHeaderBytes < 4<<10 {
		errs = append(errs, errors.New("maxHeaderBytes: must be >= 4096"))
	}
	if c.Drain < 0 {
		errs = append(errs, errors.New("drain: must be >= 0"))
	}
	return errors.Join(errs...)
}

// ErrBadAddress reports an address that ParseAddress refuses. It begins with
// the name of the setting.
var ErrBadAddress = errors.New("listen: must be host:port, with an address or a name and a port up to 65535")

// ParseAddress returns the host of an address that can be listened on, as far
// as that is known without resolving names.
func ParseAddress(address string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", false
	}
	if _, err := net.DefaultResolver.LookupPort(context.Background(), "tcp", port); err != nil { // a number, or a name that the system knows
		return "", false
	}
	numeric := host != "" && strings.Trim(host, "0123456789.") == "" || strings.Contains(host, ":")
	_, err = netip.ParseAddr(host)
	return host, !numeric || err == nil
}

// Server is one listener: a port, or the connections of one in this process.
type Server struct {
	cfg      Config
	log      *slog.Logger
	http     *http.Server
	handler  http.Handler
	listener net.Listener
	active   atomic.Int64 // running handlers, including those that have taken over their connection
	tunnels  bool         // see NewTunnels
	handed   bool         // the connections are those of another listener, which counts them
}

// NewTunnels returns a server of HTTP/1.1 whose handler takes over most
// connections. What outlasts Drain is ended without an error, because a tunnel
// has no end of its own. log may be nil.
func NewTunnels(h http.Handler, cfg Config, log *slog.Logger) *Server {
	s := New(h, cfg, log)
	s.http.Protocols.SetUnencryptedHTTP2(false) // a tunnel takes the whole connection
	s.tunnels = true
	return s
}

// NewTLS returns a server of the connections that l accepts, which are of
// *tls.Conn after their handshake. prepare returns the context of a
// connection's requests. log may be nil.
func NewTLS(h http.Handler, cfg Config, l net.Listener, prepare func(context.Context, net.Conn) context.Context, log *slog.Logger) *Server {
	s := New(h, cfg, log)
	s.http.Protocols.SetUnencryptedHTTP2(false)
	s.http.Protocols.SetHTTP2(true)
	s.http.ConnContext = prepare
	s.listener = l
	s.handed = true
	return s
}

// New returns a server of HTTP/1.1 and HTTP/2 without TLS. It does not listen
// yet. log may be nil.
func New(h http.Handler, cfg Config, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, log: log, handler: h}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.active.Add(1)
			defer s.active.Add(-1)
			if !s.tunnels && r.URL.Path != LivePath { // tunnels have a limit of their own
				if !cfg.Limit.begin(r.Context()) {
					panic(http.ErrAbortHandler) // the client has left
				}
				defer cfg.Limit.end()
			}
			h.ServeHTTP(w, r)
		}),
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			WriteByteTimeout: cfg.WriteIdle, MaxConcurrentStreams: maxStreams,
			MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connectionBuffer,
		},
		ReadHeaderTimeout:            cfg.HeaderTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		MaxHeaderBytes:               cfg.MaxHeaderBytes,
		DisableGeneralOptionsHandler: true, // the upstream answers OPTIONS *
		ErrorLog:                     slog.NewLogLogger(quiet{log.Handler()}, slog.LevelDebug),
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateIdle {
				_ = c.SetWriteDeadline(time.Time{}) // relay may have left one for the last bytes
			}
			cfg.Limit.state(c, state)
		},
	}
	return s
}

// What an HTTP/2 connection may have open, and what is kept of bodies that
// nobody reads yet, in bytes.
const (
	maxStreams       = 100
	streamBuffer     = 256 << 10
	connectionBuffer = 1 << 20
)

// quiet keeps the text of the server's own complaints out of the log, because
// they quote what clients send.
type quiet struct{ slog.Handler }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	return q.Handler.Handle(ctx, slog.NewRecord(r.Time, r.Level, "connection dropped by the server", r.PC))
}

// Listen opens the port. Its error names the address.
func (s *Server) Listen() error {
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.cfg.Listen, err)
	}
	s.listener = l
	return nil
}

// Use serves a port that is open already, in place of Listen.
func (s *Server) Use(l net.Listener) { s.listener = l }

// Addr returns the address of the listener, nil before Listen.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Serve serves until ctx ends, then closes the listener and lets what is in
// progress finish, including upgraded connections and tunnels, for at most
// Drain. It ends idle ones. It returns nil if everything finished, otherwise an
// error that counts what was cut. Call Listen first.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		return errors.New("serve: not listening")
	}
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	within := context.WithValue(base, closingKey{}, &closing{begun: ctx.Done(), drain: s.cfg.Drain})
	s.http.BaseContext = func(net.Listener) context.Context { return within }

	failed := make(chan error, 1)
	accepting := s.listener
	if !s.handed {
		accepting = newLimited(accepting, s.cfg.Limit)
	}
	go func() { failed <- s.http.Serve(accepting) }()
	select {
	case err := <-failed:
		_ = s.http.Close()
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	case <-ctx.Done():
	}

	drained, cancel := context.WithTimeout(base, s.cfg.Drain)
	defer cancel()
	err := s.http.Shutdown(drained)
	if served := <-failed; err == nil && !errors.Is(served, http.ErrServerClosed) {
		err = served // Serve returns as soon as Shutdown has begun, and only then
	}
	if err == nil && s.quiesce(drained) {
		return nil
	}
	left := s.active.Load()
	cut(ErrCut) // tunnels end with their context
	_ = s.http.Close()
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), cutGrace)
	defer cancelLast()
	s.quiesce(last)
	if s.tunnels { // tunnels have no end of their own, so nothing is cut that would have ended
		s.log.Info("tunnels were ended", "tunnels", left, "after", s.cfg.Drain.String())
		return nil
	}
	return fmt.Errorf("drain %s: %d exchanges cut after %s", s.listener.Addr(), left, s.cfg.Drain)
}

// ErrCut is why the context of what outlasts Config.Drain ends.
var ErrCut = errors.New("cut at shutdown")

// closing tells a request that its listener closes, and how long it may
// continue.
type closing struct {
	begun <-chan struct{}
	drain time.Duration
}

// closingKey is the key in a request's context of what closingOf returns.
type closingKey struct{}

// closingOf returns the closing of a request's listener, or nil.
func closingOf(request context.Context) *closing {
	c, _ := request.Value(closingKey{}).(*closing)
	return c
}

// Closing returns a channel that is closed when the listener of a request
// closes, or nil if it has none.
func Closing(request context.Context) <-chan struct{} {
	if c := closingOf(request); c != nil {
		return c.begun
	}
	return nil
}

// cutGrace is how long handlers may take to notice that they were cut.
const cutGrace = 2 * time.Second

// quiesce waits until no handler runs and reports whether that happened before
// ctx ended. http.Server.Shutdown does not wait for connections that were taken
// over.
func (s *Server) quiesce(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.active.Load() > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// LivePath answers 200 while the process serves. It is the only path of the
// reverse listener that does not go to the upstream, and the only one that the
// forward listener serves.
const LivePath = "/.remora/livez"

// liveServer distinguishes Remora from other programs that answer 200 to any
// request.
const liveServer = "Remora"

// Live answers a request for LivePath.
func Live(w http.ResponseWriter) {
	h := w.Header()
	h["Server"] = []string{liveServer}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

// IsLive reports whether answer, a response to a request for LivePath, comes
// from a Remora that is serving.
func IsLive(answer *http.Response) bool {
	return answer.StatusCode == http.StatusOK && answer.Header.Get("Server") == liveServer
}
