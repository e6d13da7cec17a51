package process

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"sync"
	"time"
)

// Config of a Client.
type Config struct {
	// Command returns the process to start, which is to call [Inherit]. The
	// Client sets its files, streams and system attributes.
	Command func() (*exec.Cmd, error)
	// Boot returns what Inherit returns in the process. crashes is the number
	// of consecutive times that it crashed by a fault of its own while it
	// opened the store.
	Boot func(crashes int) ([]byte, error)
	// Excused reports whether a fault at this moment has a cause outside the
	// store, such as a full disk, and is not to be counted. nil = never.
	Excused func() bool
	// Build identifies the build of this program.
	Build string
	// Nice lowers the priority of the process, 0 to 19, where the system
	// supports that.
	Nice int

	// Ping is the interval at which the process is asked for its status.
	Ping time.Duration
	// Suspect is how long it may owe that answer before calls fail with
	// storage.ErrUnavailable; Hang, before it is killed. Stuck is how long a
	// call may take before it is killed.
	Suspect, Hang, Stuck time.Duration
	// Stop is how long it may take to close the store and exit.
	Stop time.Duration
	// FirstWait is the wait before a restart. It doubles with every failed
	// start, up to LastWait.
	FirstWait, LastWait time.Duration
}

// DefaultConfig lacks Command, Boot and Build.
func DefaultConfig() Config {
	return Config{
		Nice: 5,
		Ping: time.Second, Suspect: time.Second, Hang: 5 * time.Second, Stuck: time.Minute, Stop: 25 * time.Second,
		FirstWait: 100 * time.Millisecond, LastWait: 15 * time.Second,
	}
}

// Validate returns all problems.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, field, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: must be %s", field, want))
		}
	}
	check(c.Nice >= 0 && c.Nice <= 19, "nice", "0..19")
	check(c.Hang >= 100*time.Millisecond, "hang", ">= 100ms")
	return errors.Join(errs...)
}

// Client is a store in a process of its own. It works while Run does.
type Client struct {
	calls
	cfg Config
	log *slog.Logger

	mu       sync.Mutex // guards what follows
	current  *link      // nil = none
	reason   string     // why there is none
	pid      int
	restarts uint64
	last     Status // of the previous process
}

// New returns a Client without a process. A nil log discards.
func New(cfg Config, log *slog.Logger) *Client {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Client{cfg: cfg, log: log, reason: "its process has not been started yet"}
	c.link = c.connection
	return c
}

func (c *Client) connection() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil, unavailable(c.reason)
	}
	return c.current, nil
}

// Status returns the last status of the process, at most some seconds old. It
// does no I/O.
func (c *Client) Status() Status {
	c.mu.Lock()
	l, s, reason := c.current, c.last, c.reason
	pid, restarts := c.pid, c.restarts
	c.mu.Unlock()
	s.Open, s.Opening = false, false
	if l != nil {
		status, known, down := l.state()
		switch {
		case down != nil:
			reason = down.Error()
		case !known:
			reason = "its process has just been started"
		default:
			s, reason = status, status.Reason
		}
	}
	s.Reason, s.PID, s.Restarts = reason, pid, restarts
	return s
}

func (c *Client) setLink(l *link, pid int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		if status, known, _ := c.current.state(); known {
			c.last = status
		}
	}
	c.current, c.pid, c.reason = l, pid, reason
}

// Remote is a connection to the store of a running Remora, and is a store like
// [Client].
type Remote struct {
	calls
	conn *link
}

// Dial connects to the named socket that [Server.Listen] serves in dir.
func Dial(dir, name, build string) (*Remote, error) {
	conn, err := dialSocket(dir, name)
	if err != nil {
		return nil, err
	}
	return connect(conn, build)
}

func connect(conn net.Conn, build string) (*Remote, error) {
	r := &Remote{}
	l, err := newLink(conn, build, &r.free)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.ready:
	case <-l.stopped:
	case <-time.After(handshakeTimeout):
	}
	r.conn = l
	r.link = func() (*link, error) { return l, nil }
	return r, nil
}

// Status returns the status at the time of Dial.
func (r *Remote) Status() Status {
	s, _, _ := r.conn.state()
	return s
}

// Close ends the connection.
func (r *Remote) Close() error {
	r.conn.close()
	return nil
}
