package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
)

// StreamConfig limits how long a body may pause. Neither limits how long it may
// take.
type StreamConfig struct {
	// ReadIdle ends a request whose body sends nothing for so long, and a
	// WebSocket whose frames are read, in the middle of a message.
	ReadIdle time.Duration
	// WriteIdle ends a response whose client takes nothing for so long.
	WriteIdle time.Duration
}

// DefaultStreamConfig tolerates slow networks, but not abandoned connections.
func DefaultStreamConfig() StreamConfig {
	return StreamConfig{ReadIdle: time.Minute, WriteIdle: listener.DefaultWriteIdle}
}

// Validate returns all problems of c, joined.
func (c StreamConfig) Validate() error {
	var errs []error
	if c.ReadIdle <= 0 {
		errs = append(errs, errors.New("readIdle: must be > 0"))
	}
	if c.WriteIdle <= 0 {
		errs = append(errs, errors.New("writeIdle: must be > 0"))
	}
	return errors.Join(errs...)
}

// plane is the data plane: it carries requests to upstreams and responses back,
// and knows nothing of memory. It is immutable and safe for concurrent use.
type plane struct {
	router *httpclient.Router
	stream StreamConfig
}

// openPlane reads the upstreams' CA files. It dials nothing.
func openPlane(ups []httpclient.UpstreamConfig, t httpclient.TransportConfig, s StreamConfig) (*plane, error) {
	r, err := httpclient.OpenRouter(ups, t)
	if err != nil {
		return nil, err
	}
	return &plane{router: r, stream: s}, nil
}

// choose returns the upstream for in, or nil.
func (p *plane) choose(in *http.Request) *httpclient.Upstream { return p.router.Route(in) }

// Copy buffers. A stream of events needs little, and there may be thousands of
// streams. A reply that fills the small buffer gets the large one.
const (
	smallBuffer = 4 << 10
	largeBuffer = 32 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// copyBuffer holds the buffer that a relay needs at the time.
type copyBuffer struct {
	large bool
	small *[smallBuffer]byte
	big   *[largeBuffer]byte
}

func (c *copyBuffer) borrow() []byte {
	if c.large {
		if c.big == nil {
			c.big = largeBuffers.Get().(*[largeBuffer]byte)
		}
		return c.big[:]
	}
	if c.small == nil {
		c.small = smallBuffers.Get().(*[smallBuffer]byte)
	}
	return c.small[:]
}

// enlarge makes the next buffer a large one.
func (c *copyBuffer) enlarge() {
	c.giveBack()
	c.large = true
}

func (c *copyBuffer) giveBack() {
	if c.small != nil {
		smallBuffers.Put(c.small)
		c.small = nil
	}
	if c.big != nil {
		largeBuffers.Put(c.big)
		c.big = nil
	}
}

// headDelay is how long the head of a response waits for the first bytes of its
// body, to be sent with them in one packet.
const headDelay = time.Millisecond

// unguarded is how much is sent to an HTTP/1 client before the write deadline
// is set: what any socket buffer takes.
const unguarded = 16 << 10

// failedSide is the side that ended a relay early.
type failedSide uint8

const (
	failedNone failedSide = iota
	failedUpstream
	failedClient
)

// relayed is the outcome of relaying a response.
type relayed struct {
	Status    int
	Bytes     int64     // of the body, written to the client
	FirstByte time.Time // when the first of them had been written; zero = none
	// Complete means that the upstream ended the body cleanly and the client
	// got all of it.
	Complete bool
	Failed   failedSide
	Err      error // the cause, if a side failed; contains addresses, never content
}

// abort cuts the client's connection (HTTP/2: the stream) if a side failed, so
// that the client can't mistake a part for the whole. It must be the handler's
// last act: it panics with http.ErrAbortHandler, which net/http handles
// silently.
func (r relayed) abort() {
	if r.Failed != failedNone {
		panic(http.ErrAbortHandler)
	}
}

// fail marks r as cut short.
func (r *relayed) fail(side failedSide, err error) { r.Failed, r.Err = side, err }

// relay copies resp to the client: status, headers, then each piece of the body
// as it arrives, in one write and one flush, then the trailers. Headers that w
// already has are kept. It closes resp.Body.
//
// hold, if not nil, is given each piece before the client, with whether the
// body is known to end with it, until it returns true. sink, if not nil, gets
// each piece after the client; it must not keep it. Either is not called again
// after a panic, and the client is not affected.
func (p *plane) relay(w http.ResponseWriter, in *http.Request, resp *http.Response, hold func(p []byte, ends bool) (over bool), sink func([]byte)) relayed {
	defer resp.Body.Close()
	h := w.Header()
	httpclient.CopyResponse(h, resp.Header)
	announced := announceTrailers(h, resp.Trailer)
	w.WriteHeader(resp.StatusCode)

	r := relayed{Status: resp.StatusCode}
	p.copyBody(*http.NewResponseController(w), w, in, resp, hold, sink, &r)
	if r.Complete {
		copyTrailers(h, resp.Trailer, announced)
	}
	return r
}

// waitingBody is a response body that can wait without a buffer.
type waitingBody interface {
	Ready() bool      // reports whether Read will not have to wait
	Await(large bool) // waits until Ready; large means that the reader's buffer is a large one
}

// copyBody copies resp.Body to w and records the outcome in r.
func (p *plane) copyBody(ctl http.ResponseController, w io.Writer, in *http.Request, resp *http.Response, hold func([]byte, bool) bool, sink func([]byte), r *relayed) {
	if resp.Body == http.NoBody {
		r.Complete = true
		return
	}
	copier := copyBuffer{large: resp.ContentLength > smallBuffer}
	defer copier.giveBack()
	own, _ := resp.Body.(waitingBody)

	var late *lateHead
	if own == nil || !own.Ready() {
		late = lateHeads.Get().(*lateHead)
		late.arm(ctl)
		defer func() { late.drop() }()
	}

	bound := newWriteBound(ctl, in.ProtoMajor >= 2, p.stream.WriteIdle)
	defer bound.drop()
	for {
		if own != nil && !own.Ready() {
			copier.giveBack()
			own.Await(copier.large)
		}
		buf := copier.borrow()
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if hold != nil && callHold(hold, buf[:n], err != nil || r.Bytes+int64(n) == resp.ContentLength) {
				hold = nil
			}
			if late != nil {
				late.drop()
				late = nil
			}
			guarded := in.ProtoMajor >= 2 || r.Bytes > unguarded || n > unguarded
			if guarded {
				bound.begin()
			}
			werr := writeFlush(&ctl, w, buf[:n])
			if guarded {
				werr = bound.end(werr)
			}
			if werr != nil {
				r.fail(failedClient, fmt.Errorf("write to client: %w", werr))
				return
			}
			if r.Bytes == 0 {
				r.FirstByte = time.Now()
			}
			r.Bytes += int64(n)
			if sink != nil && !feed(sink, buf[:n]) {
				sink = nil
			}
			if n == smallBuffer {
				copier.enlarge()
			}
		}
		if err == io.EOF {
			if r.Bytes == 0 && resp.ContentLength < 0 { // or the server would write a length, and no trailers after it
				late.drop()
				late = nil
				_ = ctl.Flush()
			}
			bound.last()
			r.Complete = true
			return
		}
		if err != nil {
			if r.Bytes == 0 { // the head has arrived, and may be all that the client learns
				late.drop()
				late = nil
				_ = ctl.Flush()
			}
			if cause := in.Context().Err(); cause != nil {
				r.fail(failedClient, fmt.Errorf("client left: %w", cause))
			} else {
				r.fail(failedUpstream, fmt.Errorf("read from upstream: %w", err))
			}
			return
		}
	}
}

func writeFlush(ctl *http.ResponseController, w io.Writer, p []byte) error {
	if _, err := w.Write(p); err != nil {
		return err
	}
	return ctl.Flush()
}

// callHold calls hold and reports whether it must not be called again.
func callHold(hold func([]byte, bool) bool, p []byte, ends bool) (over bool) {
	defer func() {
		if recover() != nil {
			over = true
		}
	}()
	return hold(p, ends)
}

// feed calls sink and reports whether it returned without a panic.
func feed(sink func([]byte), p []byte) (ok bool) {
	defer func() {
		if !ok {
			_ = recover()
		}
	}()
	sink(p)
	return true
}

// lateHead flushes the head of a response whose body is slow to begin. It is
// pooled with its timer. A timer that fires late may flush the head of the next
// response early, which is harmless, and never touches a writer that was
// dropped.
type lateHead struct {
	mu    sync.Mutex
	ctl   http.ResponseController // zero when dropped
	timer *time.Timer
}

var lateHeads = sync.Pool{New: func() any {
	l := &lateHead{}
	l.timer = time.AfterFunc(time.Hour, l.flush)
	l.timer.Stop()
	return l
}}

func (l *lateHead) arm(ctl http.ResponseController) {
	l.mu.Lock()
	l.ctl = ctl
	l.mu.Unlock()
	l.timer.Reset(headDelay)
}

func (l *lateHead) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctl != (http.ResponseController{}) {
		_ = l.ctl.Flush() // a later write meets the same error
		l.ctl = http.ResponseController{}
	}
}

// drop releases the writer, and returns l to the pool. A nil l has been dropped
// already.
func (l *lateHead) drop() {
	if l == nil {
		return
	}
	l.timer.Stop()
	l.mu.Lock()
	l.ctl = http.ResponseController{}
	l.mu.Unlock()
	lateHeads.Put(l)
}

// announceTrailers declares the trailers that the upstream declared, and
// returns their number.
func announceTrailers(h, trailer http.Header) int {
	if len(trailer) == 0 {
		return 0
	}
	names := make([]string, 0, len(trailer))
	for name := range trailer {
		if httpclient.IsTrailer(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return 0
	}
	h["Trailer"] = []string{strings.Join(names, ", ")}
	return len(names)
}

// copyTrailers adds the trailers that arrived. Those that were not announced
// need a prefix that net/http removes.
func copyTrailers(h, trailer http.Header, announced int) {
	for name, values := range trailer {
		if !httpclient.IsTrailer(name) {
			continue
		}
		if len(trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

// requestBody returns in's body under the ReadIdle deadline.
func (p *plane) requestBody(w http.ResponseWriter, in *http.Request) io.ReadCloser {
	var g *guardedBody
	return p.guard(w, in, &g)
}

// guard is requestBody with a guardedBody that g has already, or that is
// created and stored at g.
func (p *plane) guard(w http.ResponseWriter, in *http.Request, g **guardedBody) io.ReadCloser {
	if in.Body == nil || in.Body == http.NoBody {
		return http.NoBody
	}
	if *g == nil {
		*g = new(guardedBody)
	}
	**g = guardedBody{body: in.Body, ctl: *http.NewResponseController(w), idle: p.stream.ReadIdle}
	return *g
}

// leaveBody is called if in is answered without reading its body. The server
// reads what arrives of it, without a deadline of its own, before it writes a
// short answer.
func (p *plane) leaveBody(w http.ResponseWriter, in *http.Request) {
	if in.Body != nil && in.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.stream.ReadIdle))
	}
}

// guardedBody extends the connection's read deadline as the body is read, and
// removes it at the end, because what the server reads afterwards is the client
// leaving.
type guardedBody struct {
	body  io.ReadCloser
	ctl   http.ResponseController
	idle  time.Duration
	armed time.Time
}

func (b *guardedBody) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(b.armed) > b.idle/4 {
		b.armed = now
		_ = b.ctl.SetReadDeadline(now.Add(b.idle)) // a connection that can't has no limit
	}
	n, err := b.body.Read(p)
	switch {
	case err == nil:
	case err == io.EOF:
		_ = b.ctl.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: %w", httpclient.ErrSlowBody, err)
	default:
		err = fmt.Errorf("%w: %w", httpclient.ErrClientBody, err)
	}
	return n, err
}

func (b *guardedBody) Close() error { return b.body.Close() }
