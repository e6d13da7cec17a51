package httpclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is one connection of a client. It belongs to one exchange at a time, and
// to the goroutine of that exchange.
//
// It holds a read buffer only while there is something to read. A thousand
// streams that wait for their next event, or requests whose model is thinking,
// need none.
type conn struct {
	client *client
	tcp    *net.TCPConn
	raw    syscall.RawConn
	close  func() // closes tcp; any goroutine may call it, repeatedly

	br       bufio.Reader  // without a buffer if borrowed is nil
	borrowed *bufio.Reader // its buffer is br's

	reused    bool
	answered  bool // a byte has arrived since the request began
	unread    bool // the request was provably not read, see untaken
	takes     bool // taken is known
	taken     uint64
	headLeft  int64 // bytes that may still be read; limited while a head is read
	idleSince time.Time

	// The read deadline is moved as rarely as possible: deadline is the
	// socket's (zero = none), headBy the intended one. If it passes too early
	// it is extended.
	deadline time.Time
	headBy   time.Time
	upload   *upload // of the current request; nil = not needed
	cut      bool    // the request was not and will not be sent whole, or the upstream may have taken a part of it for a request
	wanted   bool    // 100 Continue has arrived

	readable, fill, probe func(fd uintptr) bool // for raw.Read
	quiet                 bool                  // result of probe

	now   bool    // Read reads from fd without waiting
	fd    uintptr // while now
	ended error   // what fill met instead of bytes; every later Read returns it
}

// maxHead is the maximum size of a response's head, in bytes, including
// informational ones before it.
const maxHead = 1 << 20

// readBufferSize is the size of a read buffer. Trailers must fit into it.
// Longer reads bypass it.
const readBufferSize = 4 << 10

var h1ReadBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBufferSize) }}

var errHeadTooLarge = errors.New("head of the response is too large")

func newH1Conn(t *client, tcp *net.TCPConn) (*conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("reach socket: %w", err)
	}
	c := &conn{client: t, tcp: tcp, raw: raw, close: func() { _ = tcp.Close() }}
	c.readable = func(fd uintptr) bool { return peek(fd) != peekNothing }
	c.fill = func(fd uintptr) bool {
		c.borrow()
		c.now, c.fd = true, fd
		_, err := c.br.Peek(1)
		if c.now = false; errors.Is(err, errNothing) {
			c.giveBack()
			return false
		}
		c.ended = err
		return true
	}
	c.probe = func(fd uintptr) bool { c.quiet = peek(fd) == peekNothing; return true }
	return c, nil
}

// silent reports whether an idle connection is alive and nothing has arrived on
// it.
func (c *conn) silent() bool {
	for {
		c.quiet = false
		err := c.raw.Read(c.probe)
		if !c.extended(err) {
			return err == nil && c.quiet
		}
	}
}

// await returns when there is something to read, or the end. It holds no buffer
// while it waits. What arrived is then in br, unless much is arriving that a
// large read is to take directly; that is left in the socket.
func (c *conn) await(much bool) error {
	if c.br.Buffered() > 0 || c.ended != nil {
		return nil
	}
	c.giveBack()
	look := c.fill
	if much {
		look = c.readable
	}
	for {
		if err := c.raw.Read(look); !c.extended(err) {
			return err
		}
	}
}

// borrow gives br a buffer.
func (c *conn) borrow() {
	if c.borrowed == nil {
		c.borrowed = h1ReadBuffers.Get().(*bufio.Reader)
		c.borrowed.Reset(c)
		c.br = *c.borrowed
	}
}

// giveBack returns br's buffer. Unread bytes are lost.
func (c *conn) giveBack() {
	if c.borrowed != nil {
		c.br = bufio.Reader{}
		c.borrowed.Reset(nil)
		h1ReadBuffers.Put(c.borrowed)
		c.borrowed = nil
	}
}

// Read implements io.Reader for br.
func (c *conn) Read(p []byte) (int, error) {
	if c.headLeft <= 0 {
		return 0, errHeadTooLarge
	}
	if c.ended != nil {
		return 0, c.ended
	}
	p = p[:min(int64(len(p)), c.headLeft)]
	for {
		var n int
		var err error
		if c.now {
			n, err = readNow(c.fd, p)
		} else if n, err = c.tcp.Read(p); n == 0 && c.extended(err) {
			continue
		}
		c.headLeft -= int64(n)
		c.answered = c.answered || n > 0
		return n, err
	}
}

// extended reports whether err is a deadline that passed too early. It then
// moves it.
func (c *conn) extended(err error) bool {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	next := c.headBy
	if !next.IsZero() && c.upload != nil { // the wait begins when the request has been sent
		next = time.Now().Add(c.client.headerTimeout)
		if ended, ok := c.upload.ended(); ok {
			next = ended.Add(c.client.headerTimeout)
		}
	}
	if !next.IsZero() && !time.Now().Before(next) {
		return false
	}
	c.deadline = next
	return c.tcp.SetReadDeadline(next) == nil
}

// exchange sends r and returns the head of the answer. If it fails the
// connection is closed, and sent reports whether any of the request had left.
func (c *conn) exchange(w http.ResponseWriter, in *http.Request, r *request) (resp *http.Response, sent bool, err error) {
	stop := context.AfterFunc(in.Context(), c.close)
	c.upload, c.cut, c.unread = nil, false, false
	if c.reused {
		c.markTaken()
	}
	resp, sent, err = c.ask(w, in, r)
	if c.upload == nil {
		r.release()
	}
	if err != nil {
		stop()
		c.unread = c.reused && !c.answered && in.Context().Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) && c.untaken()
		c.close()
		c.giveBack()
		return nil, sent, err
	}
	b, own := resp.Body.(*responseBody)
	if !own {
		b = &responseBody{src: resp.Body}
	}
	b.c, b.stop, b.keep = c, stop, !resp.Close && !c.cut
	resp.Request = nil // nobody needs it, and a stream would keep it
	if resp.Body == http.NoBody && c.upload == nil {
		b.end(true)
		return resp, sent, nil
	}
	b.eof = resp.Body == http.NoBody // there is nothing to wait for
	resp.Body = b
	return resp, sent, nil
}

func (c *conn) ask(w http.ResponseWriter, in *http.Request, r *request) (resp *http.Response, sent bool, err error) {
	c.answered, c.wanted, c.headLeft = false, false, maxHead
	if r.waits {
		if sent, err = r.sendHead(c); err == nil {
			resp, err = c.awaitContinue(w, in)
		}
		if err != nil || resp != nil {
			c.cut = true // the body is not sent
			return resp, sent, err
		}
	}
	unasked := r.waits && !c.wanted
	n, err := r.send(c)
	sent = sent || n > 0
	if err != nil {
		if !sent {
			return nil, false, err
		}
		// An upstream that refuses a body may have said why before it hung up.
		c.cut = true
		c.headBy = time.Now().Add(refusalWait)
		c.deadline = c.headBy
		_ = c.tcp.SetReadDeadline(c.deadline)
		if resp, rerr := c.readHead(w, in); rerr == nil {
			return resp, true, nil
		}
		return nil, true, err
	}
	c.expect()
	if resp, err = c.readHead(w, in); err != nil {
		if cause := c.upload.failure(); cause != nil {
			err = cause
		}
	}
	// The answer may be to the head alone and cross with the body, which the
	// upstream would then take for another request.
	c.cut = c.cut || unasked && !c.wanted
	return resp, sent, err
}

// Limits of waits other than the header timeout.
const (
	refusalWait  = 50 * time.Millisecond // for an answer after the connection took no more
	continueWait = time.Second           // for 100 Continue, before the body is sent without it
)

// awaitContinue waits until the upstream accepts the body of the request whose
// head it has, or has been silent for too long. A response means that it does
// not want the body.
func (c *conn) awaitContinue(w http.ResponseWriter, in *http.Request) (*http.Response, error) {
	c.headBy = time.Now().Add(continueWait)
	c.deadline = c.headBy
	_ = c.tcp.SetReadDeadline(c.deadline) // a later read meets the same error
	if err := c.await(false); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, nil
		}
		return nil, err
	}
	c.expect()
	resp, err := c.readAny(w, in)
	if err != nil || resp.StatusCode != http.StatusContinue {
		return resp, err
	}
	c.wanted = true
	return nil, nil
}

// expect begins the wait for a response's head.
func (c *conn) expect() {
	c.headBy = time.Time{}
	if c.client.headerTimeout == 0 {
		return
	}
	c.headBy = time.Now().Add(c.client.headerTimeout)
	if c.deadline.IsZero() {
		c.deadline = c.headBy
		_ = c.tcp.SetReadDeadline(c.deadline)
	}
}

// readHead reads the head of the final response.
func (c *conn) readHead(w http.ResponseWriter, in *http.Request) (*http.Response, error) {
	for {
		resp, err := c.readAny(w, in)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusContinue { // this hop's own server sends it when the body is first read
			c.headLeft, c.headBy = math.MaxInt64, time.Time{}
			return resp, nil
		}
		c.wanted = true
	}
}

// readAny reads the head of the final response or of a 100 Continue. Other
// informational responses are passed on.
func (c *conn) readAny(w http.ResponseWriter, in *http.Request) (*http.Response, error) {
	for {
		if err := c.await(false); err != nil {
			return nil, err
		}
		c.borrow()
		resp, err := readResponse(&c.br, in)
		switch {
		case err != nil:
			return nil, notHTTP(err)
		case resp.StatusCode >= 200 || resp.StatusCode == http.StatusContinue:
			return resp, nil
		case resp.StatusCode < 100 || resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, ErrBadResponse
		case in.ProtoAtLeast(1, 1): // HTTP/1.0 has no informational responses
			passInformational(w, resp.StatusCode, resp.Header)
		}
	}
}

// notHTTP marks the error of reading a head if the connection is not at fault:
// what arrived is not HTTP.
func notHTTP(err error) error {
	if _, broken := errors.AsType[net.Error](err); broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errHeadTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotHTTP, err)
}
