package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// doorConn is one client's connection while all that came on it are ordinary requests (see ordinaryRequest). It serves them on one
// goroutine, which waits for the next without a buffer. With the first that is out of the ordinary the connection goes to net/http,
// for good.
//
// What net/http does by a goroutine for each request, to notice a client that leaves, is done here only for those that take long: see
// door.watch.
type doorConn struct {
	door   *door
	tcp    *net.TCPConn
	tls    *secureConn // nil = plain
	raw    syscall.RawConn
	conn   net.Conn // tcp or tls
	out    io.Writer
	ctx    context.Context // of its requests; ends with the connection
	cancel context.CancelFunc
	blank  *http.Request // what its requests have in common

	ahead    *[mostHead]byte // what has been read ahead stands in ahead[from:to]; nil = nothing
	from, to int
	fill     func(fd uintptr) bool
	count    func(fd uintptr)
	there    int // what count found
	body     bodyReader
	waits    atomic.Int32 // waitsNot, waitsIdle or waitsOver
	writer   doorWriter   // of the request under way

	// turn counts beginnings and ends of the times in which only the end of the connection is read, if anything: odd = it is such a
	// time.
	turn atomic.Uint32

	mu       sync.Mutex // guards what follows
	want     time.Time  // the read deadline that is meant; zero = none
	have     time.Time  // the one that the socket has, which is moved as seldom as can be
	reading  bool       // of a body, from the socket
	watching chan struct{}
	aborted  bool // the watch was told to end
}

// What a connection does between requests.
const (
	waitsNot  = iota // it serves one
	waitsIdle        // it may be closed
	waitsOver        // it has been, or nothing is to be closed any more
)

var aheads = sync.Pool{New: func() any { return new([mostHead]byte) }}

// newDoorConn makes a connection that nobody serves yet. secure is nil where tcp is plain.
func newDoorConn(d *door, tcp *net.TCPConn, secure *secureConn, base context.Context) (*doorConn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &doorConn{door: d, tcp: tcp, tls: secure, raw: raw, conn: tcp, out: newQuickWriter(raw)}
	c.ctx, c.cancel = context.WithCancel(base)
	c.blank = (&http.Request{RemoteAddr: tcp.RemoteAddr().String()}).WithContext(c.ctx)
	if secure != nil {
		state := secure.ConnectionState()
		c.conn, c.out, c.blank.TLS = secure, secure, &state
	}
	c.writer.c, c.writer.header = c, http.Header{}
	c.fill = c.readAhead
	c.count = func(fd uintptr) { c.there = waiting(fd) }
	c.body.look = c.body.readNow
	return c, nil
}

// readAhead reads what is there, behind what has been read ahead, and says whether that is anything: bytes, or the end in their place.
func (c *doorConn) readAhead(fd uintptr) bool {
	if c.ahead == nil {
		c.ahead = aheads.Get().(*[mostHead]byte)
	}
	if c.from == c.to {
		c.from, c.to = 0, 0
	}
	var n int
	var err error
	if c.tls != nil {
		n, err = c.tls.readNow(fd, c.ahead[c.to:])
	} else {
		n, err = readNow(fd, c.ahead[c.to:])
	}
	if errors.Is(err, errNothing) {
		c.giveBack()
		return false
	}
	c.to += n
	return true
}

// giveBack gives the buffer back once all of it is read.
func (c *doorConn) giveBack() {
	if c.ahead != nil && c.from == c.to {
		aheads.Put(c.ahead)
		c.ahead = nil
	}
}

// serve serves until the connection ends or is handed on.
func (c *doorConn) serve() {
	defer c.cancel()
	defer c.door.leave(c)
	by := time.Now().Add(c.door.cfg.HeaderTimeout)
	for posted := false; c.await(by); {
		if posted && c.skipLineEnds() {
			c.door.active.Add(-1)
			continue
		}
		a, n := ordinaryRequest(c.ahead[c.from:c.to], c.blank)
		if a == nil {
			rest := append([]byte(nil), c.ahead[c.from:c.to]...)
			c.from = c.to
			c.giveBack()
			_ = c.tcp.SetReadDeadline(time.Time{})
			c.door.handed.hand(c.handedOn(rest))
			c.door.active.Add(-1)
			return
		}
		c.from += n
		if posted = a.request.Method == http.MethodPost; !c.exchange(a) {
			break
		}
		by = time.Now().Add(c.door.cfg.IdleTimeout)
	}
	_ = c.conn.Close()
	c.from = c.to
	c.giveBack()
}

// skipLineEnds takes what old clients send behind the body of a POST, and says whether nothing else is there. It is as much as net/http
// takes.
func (c *doorConn) skipLineEnds() bool {
	for most := c.from + 4; c.from < min(c.to, most) && (c.ahead[c.from] == '\r' || c.ahead[c.from] == '\n'); c.from++ {
	}
	return c.from == c.to
}

// await waits for bytes of a request, at most until by, and says whether any are there and are to be served. Then they count as active.
func (c *doorConn) await(by time.Time) bool {
	c.waits.Store(waitsIdle)
	for c.from == c.to {
		if c.giveBack(); c.door.closing.Load() { // or shut closes it
			return false
		}
		c.mu.Lock()
		if c.want = by; c.have.IsZero() || c.have.After(by) {
			c.move(by)
		}
		c.mu.Unlock()
		err := c.raw.Read(c.fill)
		if err == nil && c.to > c.from {
			break
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(by) {
			return false
		}
		c.mu.Lock() // one of before, which passed too early
		c.move(by)
		c.mu.Unlock()
	}
	c.mu.Lock()
	c.want = time.Time{}
	c.mu.Unlock()
	c.door.active.Add(1) // before shut can take it for one that serves: the process would end between this and the handler
	if c.waits.CompareAndSwap(waitsIdle, waitsNot) && !c.door.closing.Load() {
		return true
	}
	c.door.active.Add(-1)
	return false
}

// move sets the socket's read deadline. Needs c.mu.
func (c *doorConn) move(t time.Time) {
	if !t.Equal(c.have) {
		c.have = t
		_ = c.tcp.SetReadDeadline(t) // a read that follows meets the same error
	}
}

// exchange serves one request, which is active until then, and says whether the connection may serve another.
func (c *doorConn) exchange(a *doorRequest) bool {
	defer c.door.active.Add(-1)
	w := &c.writer
	w.begin(a)
	if a.body.left > 0 {
		a.body.c = c
		a.request.Body = &a.body
	} else {
		c.giveBack()
		c.listen()
	}
	finished := false
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			c.door.complain()
		}
		if !finished { // by a panic or runtime.Goexit: who still reads the body is not waited for
			_ = c.tcp.Close()
		}
		c.stopReading()
		a.body.end()
		c.deafen()
		w.end()
	}()
	c.door.handler.ServeHTTP(w, &a.request)
	again := w.finish() && c.ctx.Err() == nil
	finished = true
	return again
}

// read reads from the body of the request under way.
func (c *doorConn) read(p []byte) (int, error) {
	if c.from < c.to {
		n := copy(p, c.ahead[c.from:c.to])
		c.from += n
		c.giveBack()
		return n, nil
	}
	c.mu.Lock()
	c.reading = true
	c.move(c.want)
	c.mu.Unlock()
	n, err := c.body.read(c, p)
	c.mu.Lock()
	c.reading = false
	c.mu.Unlock()
	if err != nil {
		c.cancel()
	}
	return n, err
}

// waiting is how many bytes have come and have not been read, as far as is known: of what waits under TLS the length is not.
func (c *doorConn) waiting() int64 {
	if c.there = 0; c.tls == nil {
		_ = c.raw.Control(c.count) // which fails on a closed connection alone
	}
	return int64(c.to - c.from + c.there)
}

// stopReading ends a read of the body that is still under way: the handler that has returned left it to another goroutine.
func (c *doorConn) stopReading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading {
		c.want = longAgo
		c.move(longAgo)
	}
}

// setReadDeadline is what a handler asks for. It reaches the socket when that is read.
func (c *doorConn) setReadDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.want = t; c.reading || c.watching != nil && !c.aborted { // or deafen would wait for the client
		c.move(t)
	}
}

// listen begins a time in which the end of the connection tells that the client has left.
func (c *doorConn) listen() {
	c.door.watch(underWay{c, c.turn.Add(1)})
}

// deafen ends it.
func (c *doorConn) deafen() {
	if c.turn.Load()%2 == 0 {
		return
	}
	c.turn.Add(1)
	c.mu.Lock()
	done := c.watching
	if done != nil {
		c.aborted = true
		c.move(longAgo)
	}
	c.mu.Unlock()
	if done != nil {
		<-done
		c.mu.Lock()
		c.watching, c.aborted = nil, false
		c.mu.Unlock()
	}
}

var longAgo = time.Unix(1, 0)

// watchOver begins to watch for the end, where turn still is the connection's.
func (c *doorConn) watchOver(turn uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn.Load() != turn || c.watching != nil {
		return
	}
	c.watching = make(chan struct{})
	c.move(c.want)
	go c.waitForEnd(c.watching)
}

// waitForEnd ends the context of the request under way when the client has left. What else comes is left where it is.
func (c *doorConn) waitForEnd(done chan struct{}) {
	defer close(done)
	found := peekNothing
	err := c.raw.Read(func(fd uintptr) bool {
		found = c.look(fd)
		return found != peekNothing
	})
	c.mu.Lock()
	told := c.aborted && errors.Is(err, os.ErrDeadlineExceeded)
	c.mu.Unlock()
	if found == peekEnd || err != nil && !told {
		c.cancel()
	}
}

// handedOn is the connection for net/http, which is to read ahead first.
func (c *doorConn) handedOn(ahead []byte) net.Conn {
	if c.tls != nil {
		return &secureAheadConn{aheadConn{Conn: c.tls, ahead: ahead}, c.tls.Conn}
	}
	return &aheadConn{Conn: c.tcp, ahead: ahead}
}

// look says what waits on the connection. Of TLS, which alone knows what is in its records, that is read ahead.
func (c *doorConn) look(fd uintptr) int {
	if c.tls == nil {
		return peek(fd)
	}
	had := c.to - c.from
	switch {
	case had > 0 && c.to == len(c.ahead):
		return peekSomething
	case !c.readAhead(fd):
		return peekNothing
	case c.to-c.from == had:
		return peekEnd
	default:
		return peekSomething
	}
}

// closeGently lets the client read the answer before what it still sends meets a closed connection.
func (c *doorConn) closeGently() {
	_ = closeWrite(c.conn)
	time.Sleep(lingering)
}
