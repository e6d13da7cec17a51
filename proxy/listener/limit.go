package listener

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limit bounds what the listeners of a process serve at the same time, so that
// neither memory nor file descriptors run out, however many clients come.
//
// Requests beyond the limit wait until another one has been answered, or until
// their client leaves. Twice as many connections are open. Beyond, the one that
// has been idle for longest, and for idleGrace at least, is closed; if there is
// none, new clients wait in the system's queue. A new connection is idle until
// something comes from it.
//
// The methods of a nil Limit do nothing, and count nothing. It is safe for concurrent use.
type Limit struct {
	exchanges chan struct{} // one element per exchange
	waiting   atomic.Int64  // exchanges without a place
	room      chan struct{} // signals that a connection may be accepted

	mu      sync.Mutex
	max     int        // connections
	open    int        // connections that were accepted and have not been closed
	idle    *list.List // of idleConn, in the order in which they became idle
	element map[net.Conn]*list.Element
}

type idleConn struct {
	conn  net.Conn
	since time.Time
}

// idleGrace is how long a connection must have been idle to be closed for
// another one: the next request may be on its way.
const idleGrace = time.Second

// NewLimit returns a limit of so many exchanges.
func NewLimit(exchanges int) *Limit {
	return &Limit{
		exchanges: make(chan struct{}, exchanges), room: make(chan struct{}, 1), max: 2 * exchanges,
		idle: list.New(), element: map[net.Conn]*list.Element{},
	}
}

// begin waits for a place for an exchange and reports false if ctx ends first.
// end gives the place back.
func (l *Limit) begin(ctx context.Context) bool {
	if l == nil {
		return true
	}
	select {
	case l.exchanges <- struct{}{}:
		return true
	default:
	}
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	select {
	case l.exchanges <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Exchanges returns how many are in progress and how many wait for a place, and
// how many may be in progress.
func (l *Limit) Exchanges() (active, waiting, limit int) {
	if l == nil {
		return 0, 0, 0
	}
	return len(l.exchanges), int(l.waiting.Load()), cap(l.exchanges)
}

func (l *Limit) end() {
	if l != nil {
		<-l.exchanges
	}
}

// state follows what an http.Server says of its connections.
func (l *Limit) state(c net.Conn, state http.ConnState) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.element[c]; e != nil {
		l.idle.Remove(e)
		delete(l.element, c)
	}
	if state == http.StateNew || state == http.StateIdle {
		l.element[c] = l.idle.PushBack(idleConn{c, time.Now()})
	}
}

// enter waits for a place for a connection and reports false if closed is
// closed first. leave gives the place back.
func (l *Limit) enter(closed <-chan struct{}) bool {
	for {
		l.mu.Lock()
		if l.open < l.max {
			if l.open++; l.open < l.max {
				l.signal() // another listener may wait, too
			}
			l.mu.Unlock()
			return true
		}
		victim := l.longestIdle()
		l.mu.Unlock()
		if victim != nil {
			_ = victim.Close() // its server notices, and its place is free
		}
		select {
		case <-l.room:
		case <-time.After(idleGrace / 8): // one may have been idle for long enough
		case <-closed:
			return false
		}
	}
}

func (l *Limit) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.signal()
}

func (l *Limit) signal() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// longestIdle returns the connection to be closed for a new one, nil if there
// is none. It is not returned again. Needs l.mu.
func (l *Limit) longestIdle() net.Conn {
	e := l.idle.Front()
	if e == nil || time.Since(e.Value.(idleConn).since) < idleGrace {
		return nil
	}
	c := e.Value.(idleConn).conn
	l.idle.Remove(e)
	delete(l.element, c)
	return c
}

// closeIdle closes the connection that has been idle for longest.
func (l *Limit) closeIdle() {
	l.mu.Lock()
	victim := l.longestIdle()
	l.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
}

// limited is a listener whose connections count.
type limited struct {
	net.Listener
	limit  *Limit
	closed chan struct{}
	once   sync.Once
}

func newLimited(l net.Listener, limit *Limit) net.Listener {
	if limit == nil {
		return l
	}
	return &limited{Listener: l, limit: limit, closed: make(chan struct{})}
}

// Accept waits until a connection may be open. If the system has no file
// descriptors left, it closes an idle connection; the server then tries again.
func (l *limited) Accept() (net.Conn, error) {
	if !l.limit.enter(l.closed) {
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		l.limit.leave()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.limit.closeIdle()
		}
		return nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return &countedConn{c, sync.OnceFunc(l.limit.leave)}, nil
	}
	return &countedTCP{tcp, sync.OnceFunc(l.limit.leave)}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// countedConn gives its place back when it is closed.
type countedConn struct {
	net.Conn
	leave func()
}

func (c *countedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// countedTCP is a countedConn that can do what a TCP connection can.
type countedTCP struct {
	*net.TCPConn
	leave func()
}

func (c *countedTCP) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}
