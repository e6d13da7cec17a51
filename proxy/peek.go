package proxy

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Limits on what is read of a refusal to learn its reason: bytes, also of a
// stream's first event, and time since its head. At either, what has come
// decides; if the refusal then goes to the client, the rest streams after it.
const (
	maxPeek        = 64 << 10
	refusalTimeout = time.Second
)

// peekedBody is the body of an answer whose beginning has been read, byte for
// byte the same. A goroutine reads ahead until the peek is over; if it is in a
// read then, it ends with that. Read and Close belong to one goroutine.
type peekedBody struct {
	h    *Handler // counts a panic
	body io.ReadCloser
	more chan struct{} // signals that something has arrived
	done chan struct{} // closed when the goroutine has ended
	last func()        // called once Read has reached the end; may be nil

	mu     sync.Mutex
	ahead  []byte // read ahead and not yet returned by Read
	err    error  // with which the body ended
	enough bool   // no further read
	over   bool   // the goroutine leaves body alone
	closed bool
}

// peekResponse is peekBody for a response. It returns a copy of resp, whose
// trailers the goroutine that reads ahead writes.
func peekResponse(h *Handler, resp *http.Response, timeout time.Duration, enough func(head []byte) bool) (whole *http.Response, head []byte, ended bool) {
	out := *resp
	out.Trailer = maps.Clone(resp.Trailer)
	r, head, ended := peekBody(h, resp.Body, timeout, enough)
	r.last = func() { out.Trailer = resp.Trailer }
	out.Body = r
	return &out, head, ended
}

// peekBody returns a body and its beginning: what has come when enough returns
// true, or maxPeek is reached, or timeout is over. ended reports that it is all
// of the body. enough must not keep its argument; without it nothing is enough.
func peekBody(h *Handler, body io.ReadCloser, timeout time.Duration, enough func(head []byte) bool) (whole *peekedBody, head []byte, ended bool) {
	r := &peekedBody{h: h, body: body, more: make(chan struct{}, 1), done: make(chan struct{})}
	go r.readAhead()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for waits := true; waits; {
		select {
		case <-r.more:
			waits = enough == nil || !enough(r.seen())
		case <-r.done:
			waits = false
		case <-timer.C:
			waits = false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enough = true
	return r, bytes.Clone(r.ahead), r.err == io.EOF
}

// seen returns what has been read. Read must not have been called yet.
func (r *peekedBody) seen() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ahead
}

func (r *peekedBody) readAhead() {
	defer close(r.done)
	defer r.h.guard("read ahead", func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err, r.over = io.ErrUnexpectedEOF, true
	})
	buf := make([]byte, smallBuffer)
	for total := 0; ; {
		n, err := r.body.Read(buf[:min(len(buf), maxPeek-total)])
		got := buf[:n]
		total += n
		r.mu.Lock()
		r.ahead = append(r.ahead, got...)
		r.err = err
		r.over = err != nil || r.enough || r.closed || total == maxPeek
		over, closed := r.over, r.closed
		r.mu.Unlock()
		select {
		case r.more <- struct{}{}:
		default:
		}
		if closed {
			_ = r.body.Close()
		}
		if over {
			return
		}
	}
}

func (r *peekedBody) Read(p []byte) (int, error) {
	if n := r.take(p); n > 0 {
		return n, nil
	}
	<-r.done
	if n := r.take(p); n > 0 {
		return n, nil
	}
	n, err := 0, r.err
	if err == nil {
		n, err = r.body.Read(p)
	}
	if err != nil && r.last != nil {
		r.last()
	}
	return n, err
}

func (r *peekedBody) take(p []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := copy(p, r.ahead)
	r.ahead = r.ahead[n:]
	return n
}

// Close does not wait for an upstream that sends nothing more.
func (r *peekedBody) Close() error {
	r.mu.Lock()
	r.closed = true
	over := r.over
	r.mu.Unlock()
	if over {
		return r.body.Close()
	}
	if own, ok := r.body.(interface{ Interrupt() }); ok {
		own.Interrupt() // and the goroutine closes the body
		return nil
	}
	return r.body.Close() // http.Transport's bodies may be closed during a read
}
