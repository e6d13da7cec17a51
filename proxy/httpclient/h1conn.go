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

// h1Conn is one connection of an h1Client. It belongs to one exchange at a
// time, and to the goroutine of that exchange.
//
// It holds a read buffer only while there is something to read: a thousand
// streams that wait for their next event, or requests whose model is thinking,
// need none.
type h1Conn struct {
	client *h1Client
	tcp    *net.TCPConn
	raw    syscall.RawConn
	close  func() // closes tcp; may be called from any goroutine, and again

	br   bufio.Reader  // without a buffer where lent is nil
	lent *bufio.Reader // whose buffer br has

	reused    bool
	answered  bool  // a byte has come since the request began
	headLeft  int64 // bytes that may be read; bounded while a head is read
	idleSince time.Time

	// The read deadline is moved as seldom as can be: deadline is the one that
	// the socket has (zero = none), headBy the one that is meant. One that
	// passes too early is extended.
	deadline time.Time
	headBy   time.Time
	upload   *h1Upload // of the request under way; nil = none is needed
	cut      bool      // the request was not sent whole, and will not be, or nobody knows whether it was taken for one
	wanted   bool      // 100 Continue has come

	readable, fill, probe func(fd uintptr) bool // for raw.Read
	quiet                 bool                  // what probe found

	now   bool    // Read reads from fd, and does not wait
	fd    uintptr // while now is set
	ended error   // what fill met in the place of bytes: every Read meets it from then on
}

// maxHead bounds the head of a response, informational ones before it included.
const maxHead = 1 << 20

// h1ReadBuffer is the size of a read buffer. Trailers must fit into it. Longer
// reads go past it.
const h1ReadBuffer = 4 << 10

var h1ReadBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, h1ReadBuffer) }}

var errHeadTooLarge = errors.New("head of the response is too large")

func newH1Conn(t *h1Client, tcp *net.TCPConn) (*h1Conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("reach socket: %w", err)
	}
	c := &h1Conn{client: t, tcp: tcp, raw: raw, close: func() { _ = tcp.Close() }}
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

// silent says whether an idle connection is alive and nothing has come on it.
func (c *h1Conn) silent() bool {
	for {
		c.quiet = false
		err := c.raw.Read(c.probe)
		if !c.extended(err) {
			return err == nil && c.quiet
		}
	}
}

// await returns when there is something to read, be it the end. No buffer is
// held meanwhile. What came is in br then, but where much is coming, which a
// large read is to take past br: that is left where it is.
func (c *h1Conn) await(much bool) error {
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
func (c *h1Conn) borrow() {
	if c.lent == nil {
		c.lent = h1ReadBuffers.Get().(*bufio.Reader)
		c.lent.Reset(c)
		c.br = *c.lent
	}
}

// giveBack takes it away again. What is unread is lost.
func (c *h1Conn) giveBack() {
	if c.lent != nil {
		c.br = bufio.Reader{}
		c.lent.Reset(nil)
		h1ReadBuffers.Put(c.lent)
		c.lent = nil
	}
}

// Read is for br.
func (c *h1Conn) Read(p []byte) (int, error) {
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

// extended says whether err is a deadline that passed too early, and has moved
// it then.
func (c *h1Conn) extended(err error) bool {
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

// exchange sends r and returns the head of the answer. Where it fails the
// connection is closed, and sent says whether any of the request had left.
func (c *h1Conn) exchange(w http.ResponseWriter, in *http.Request, r *h1Request) (resp *http.Response, sent bool, err error) {
	stop := context.AfterFunc(in.Context(), c.close)
	c.upload, c.cut = nil, false
	resp, sent, err = c.ask(w, in, r)
	if c.upload == nil {
		r.release()
	}
	if err != nil {
		stop()
		c.close()
		c.giveBack()
		return nil, sent, err
	}
	b, own := resp.Body.(*h1Body)
	if !own {
		b = &h1Body{src: resp.Body}
	}
	b.c, b.stop, b.keep = c, stop, !resp.Close && !c.cut
	resp.Request = nil // of no use to anybody, and a stream would keep it
	if resp.Body == http.NoBody && c.upload == nil {
		b.end(true)
		return resp, sent, nil
	}
	b.eof = resp.Body == http.NoBody // nothing comes that could be awaited
	resp.Body = b
	return resp, sent, nil
}

func (c *h1Conn) ask(w http.ResponseWriter, in *http.Request, r *h1Request) (resp *http.Response, sent bool, err error) {
	c.answered, c.wanted, c.headLeft = false, false, maxHead
	if r.waits {
		if sent, err = r.sendHead(c); err == nil {
			resp, err = c.welcome(w, in)
		}
		if err != nil || resp != nil {
			c.cut = true // the body stays here
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
	// The answer may be one to the head alone, and crossed with the body, which
	// is another request to the upstream then.
	c.cut = c.cut || unasked && !c.wanted
	return resp, sent, err
}

// Bounds of waits that stand beside the header timeout.
const (
	refusalWait  = 50 * time.Millisecond // for an answer after the connection took no more
	continueWait = time.Second           // for 100 Continue, before the body goes out unasked
)

// welcome waits until the upstream wants the body of the request whose head it
// has, or has not said anything for too long. A response means that it does not
// want it.
func (c *h1Conn) welcome(w http.ResponseWriter, in *http.Request) (*http.Response, error) {
	c.headBy = time.Now().Add(continueWait)
	c.deadline = c.headBy
	_ = c.tcp.SetReadDeadline(c.deadline) // a read that follows meets the same error
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
func (c *h1Conn) expect() {
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
func (c *h1Conn) readHead(w http.ResponseWriter, in *http.Request) (*http.Response, error) {
	for {
		resp, err := c.readAny(w, in)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusContinue { // this hop's own server says it when the body is first read
			c.headLeft, c.headBy = math.MaxInt64, time.Time{}
			return resp, nil
		}
		c.wanted = true
	}
}

// readAny reads the head of the final response, or of a 100 Continue. Other
// informational ones are passed on.
func (c *h1Conn) readAny(w http.ResponseWriter, in *http.Request) (*http.Response, error) {
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
		case in.ProtoAtLeast(1, 1): // HTTP/1.0 knows no informational responses
			passInformational(w, resp.StatusCode, resp.Header)
		}
	}
}

// notHTTP marks the error that a head was read with where the connection is not
// at fault: what came is no HTTP.
func notHTTP(err error) error {
	if _, broken := errors.AsType[net.Error](err); broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errHeadTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotHTTP, err)
}
