package proxy

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

// ServerConfig says how a door listens.
type ServerConfig struct {
	// Listen is host:port.
	Listen string
	// HeaderTimeout bounds the reading of a request's head, IdleTimeout the
	// wait for the next request on a connection. It is longer than the usual
	// clients keep theirs, so that it is they who hang up. Bodies are bounded
	// by idleness alone (StreamConfig), never by a total time.
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration
	// WriteIdle closes an HTTP/2 connection that takes nothing for so long
	// while something waits to be sent: what resets one of its streams could
	// not be sent either. It is StreamConfig.WriteIdle, which bounds answers. 0
	// = no bound.
	WriteIdle time.Duration
	// MaxHeaderBytes bounds the head of a request.
	MaxHeaderBytes int
	// Drain is how long exchanges in flight may go on after the door has
	// closed. What is left then is cut.
	Drain time.Duration
}

// DefaultServerConfig listens on loopback.
func DefaultServerConfig() ServerConfig {
	return ServerConfig{
		Listen:         "127.0.0.1:8787",
		HeaderTimeout:  10 * time.Second,
		IdleTimeout:    3 * time.Minute,
		WriteIdle:      DefaultStreamConfig().WriteIdle,
		MaxHeaderBytes: 1 << 20,
		Drain:          25 * time.Second, // a pod is given 30 s
	}
}

// Validate returns all that is wrong with c.
func (c ServerConfig) Validate() error {
	var errs []error
	if _, ok := listenHost(c.Listen); !ok {
		errs = append(errs, errBadListen)
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

var errBadListen = errors.New("listen: must be host:port, with an address or a name and a port up to 65535")

// listenHost is the host of an address that can be listened on, as far as can
// be told without asking for names.
func listenHost(address string) (host string, ok bool) {
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

// Server is one door: HTTP/1.1 and HTTP/2 without TLS, on one address.
type Server struct {
	cfg      ServerConfig
	log      *slog.Logger
	http     *http.Server
	handler  http.Handler
	listener net.Listener
	active   atomic.Int64 // handlers running, those that have taken over their connection included
	tunnels  bool         // most of what comes is taken over: net/http serves all of it
}

// NewServer makes a door that h serves. It does not listen yet. log may be nil.
func NewServer(h http.Handler, cfg ServerConfig, log *slog.Logger) *Server {
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
			h.ServeHTTP(w, r)
		}),
		Protocols:                    protocols,
		HTTP2:                        &http.HTTP2Config{WriteByteTimeout: cfg.WriteIdle},
		ReadHeaderTimeout:            cfg.HeaderTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		MaxHeaderBytes:               cfg.MaxHeaderBytes,
		DisableGeneralOptionsHandler: true, // OPTIONS * is the upstream's to answer
		ErrorLog:                     slog.NewLogLogger(quiet{log.Handler()}, slog.LevelDebug),
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateIdle {
				_ = c.SetWriteDeadline(time.Time{}) // relay may have left one for the last bytes
			}
		},
	}
	return s
}

// quiet keeps the text of the server's own complaints out of the log: they
// quote what clients send.
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

// Addr is where the door listens, nil before Listen.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Serve serves until ctx ends, then closes the door and lets what is in flight
// finish, upgraded connections and tunnels included, for at most Drain; those
// that are idle it ends. It returns nil when all did, and an error that counts
// those cut when not. Listen first.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		return errors.New("serve: not listening")
	}
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	within := context.WithValue(base, closingKey{}, &closing{begun: ctx.Done(), drain: s.cfg.Drain})
	s.http.BaseContext = func(net.Listener) context.Context { return within }

	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
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
		err = served // Serve returns as soon as Shutdown has begun, and for no other reason
	}
	if err == nil && s.quiesce(drained) {
		return nil
	}
	left := s.active.Load()
	cut(errCutAtShutdown) // tunnels end with their context
	_ = s.http.Close()
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), cutGrace)
	defer cancelLast()
	s.quiesce(last)
	if s.tunnels { // which have no end of their own: nothing is cut that would have been over some day
		s.log.Info("tunnels were ended", "tunnels", left, "after", s.cfg.Drain.String())
		return nil
	}
	return fmt.Errorf("drain %s: %d exchanges cut after %s", s.listener.Addr(), left, s.cfg.Drain)
}

// closing tells what a request came through when its door closes, and how long
// it may go on from then on.
type closing struct {
	begun <-chan struct{}
	drain time.Duration
}

// closingKey is that of a request's context under which it has what closingOf
// returns.
type closingKey struct{}

// closingOf is nil where nothing tells.
func closingOf(request context.Context) *closing {
	c, _ := request.Value(closingKey{}).(*closing)
	return c
}

// cutGrace is how long handlers may take to notice that they were cut.
const cutGrace = 2 * time.Second

// quiesce waits until no handler runs and says whether that came before ctx
// ended. http.Server.Shutdown knows nothing of connections that were taken
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

func live(w http.ResponseWriter) {
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
