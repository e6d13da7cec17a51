package httpclient

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Body is the body of a request to an upstream: nothing, pieces in memory, or a
// stream. The zero value is nothing.
type Body struct {
	pieces [][]byte
	lease  *Lease // of pieces
	stream io.ReadCloser
	length int64 // -1 = unknown, for streams only
}

// NewBody returns the concatenation of pieces, which are not copied and must
// not change until the lease is free. It can be sent again. l may be nil if
// nothing is pooled.
func NewBody(l *Lease, pieces ...[]byte) Body {
	b := Body{pieces: pieces, lease: l}
	for _, p := range pieces {
		b.length += int64(len(p))
	}
	return b
}

// StreamBody returns a body that sends r as it is read. length is -1 if it is
// unknown. It can be sent once.
func StreamBody(r io.ReadCloser, length int64) Body {
	if length == 0 {
		return Body{}
	}
	return Body{stream: r, length: length}
}

// attach makes b the body of out. Trailers need a chunked body, even if the
// length is known.
func (b Body) attach(out *http.Request, trailer http.Header) {
	out.Body, out.GetBody, out.ContentLength, out.TransferEncoding, out.Trailer = nil, nil, b.length, nil, nil
	switch {
	case b.stream != nil:
		out.Body = b.stream
	case b.length > 0:
		out.Body = b.open()
		out.GetBody = func() (io.ReadCloser, error) { return b.open(), nil }
	default:
		return
	}
	if len(trailer) > 0 {
		out.Trailer = trailer
		out.ContentLength = -1
	}
}

// Open returns a reader of the pieces, which holds the lease until it is
// closed. Close may be called at any time, from any goroutine.
func (b Body) Open() io.ReadCloser { return b.open() }

func (b Body) open() *pieceReader {
	b.lease.take()
	return &pieceReader{rest: b.pieces, lease: b.lease}
}

// Lease tracks when pooled bytes may be reused. A transport may read a body
// after RoundTrip has returned, because the upstream answered early or the
// request was cancelled. So the owner of the bytes holds one reference, each
// reader another until it is closed and no read is in progress, and releasing
// the last one frees them. The methods of a nil lease do nothing.
type Lease struct {
	refs  atomic.Int32
	bytes interface{ Free() } // called once, on any goroutine
}

// Begin makes l a lease with one reference, the caller's.
func (l *Lease) Begin(bytes interface{ Free() }) *Lease {
	l.bytes = bytes
	l.refs.Store(1)
	return l
}

func (l *Lease) take() {
	if l != nil {
		l.refs.Add(1)
	}
}

func (l *Lease) Release() {
	if l != nil && l.refs.Add(-1) == 0 {
		l.bytes.Free()
	}
}

// Errors with which the stream of a StreamBody reports that the client is at
// fault. They reach the caller of RoundTrip unchanged, even if the transport
// reports another error.
var (
	ErrSlowBody   = errors.New("request body too slow")
	ErrClientBody = errors.New("read request body")
)

var errBodyClosed = errors.New("request body closed")

// pieceReader reads pieces in order. Close may be called at any time, from any
// goroutine, more than once; it never waits. The bytes are held until a read in
// progress has ended, so freed bytes are never sent.
type pieceReader struct {
	mu     sync.Mutex
	rest   [][]byte // remaining pieces; rest[0][off:] is next. The slice itself is shared and never written
	off    int
	busy   bool
	closed bool
	lease  *Lease
}

// begin claims the reader for one read.
func (r *pieceReader) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.busy {
		return false
	}
	r.busy = true
	return true
}

func (r *pieceReader) end() {
	r.mu.Lock()
	r.busy = false
	closed := r.closed
	r.mu.Unlock()
	if closed {
		r.lease.Release()
	}
}

func (r *pieceReader) Close() error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	busy := r.busy
	r.mu.Unlock()
	if first && !busy {
		r.lease.Release()
	}
	return nil
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if !r.begin() {
		return 0, errBodyClosed
	}
	defer r.end()
	n := 0
	for n < len(p) && len(r.rest) > 0 {
		c := copy(p[n:], r.rest[0][r.off:])
		n += c
		r.advance(c)
	}
	if n == 0 && len(r.rest) == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// advance skips n bytes of the first piece, and pieces that are used up.
func (r *pieceReader) advance(n int) {
	r.off += n
	for len(r.rest) > 0 && r.off == len(r.rest[0]) {
		r.rest, r.off = r.rest[1:], 0
	}
}

// WriteTo writes each piece whole: one chunk of a chunked body.
func (r *pieceReader) WriteTo(w io.Writer) (int64, error) {
	if !r.begin() {
		return 0, errBodyClosed
	}
	defer r.end()
	var total int64
	for len(r.rest) > 0 {
		n := 0
		if piece := r.rest[0][r.off:]; len(piece) > 0 {
			var err error
			n, err = w.Write(piece)
			total += int64(n)
			if err != nil {
				return total, err
			}
		}
		r.advance(n)
	}
	return total, nil
}
