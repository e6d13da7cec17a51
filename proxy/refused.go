package proxy

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Bounds of what is read of a refusal to learn why: in bytes, also of a stream's first event, and in time from its head. Over
// either, what has come decides; where the refusal then goes to the client, it goes as it is, and the rest streams after it.
const (
	refusalPeek = 64 << 10
	refusalTime = time.Second
)

// refusedBody is the body of an answer whose beginning was looked at. It is the body's, byte for byte. A goroutine reads
// ahead until the peek is over; where it stands in a read then, it ends with that. Read and Close are for one goroutine.
type refusedBody struct {
	h    *Handler // counts a panic
	body io.ReadCloser
	more chan struct{} // told that something has come
	done chan struct{} // closed when nobody reads ahead any more
	last func()        // called once Read has met the end; nil = nothing is

	mu     sync.Mutex
	ahead  []byte // read and not given yet
	err    error  // that the body ended with
	enough bool   // no further read
	over   bool   // the goroutine leaves body alone
	closed bool
}

// peekAnswer is peekBody for an answer, which it returns in resp's place: what reads ahead writes to resp's trailers.
func peekAnswer(h *Handler, resp *http.Response, bound time.Duration, enough func(head []byte) bool) (whole *http.Response, head []byte, ended bool) {
	out := *resp
	out.Trailer = maps.Clone(resp.Trailer)
	r, head, ended := peekBody(h, resp.Body, bound, enough)
	r.last = func() { out.Trailer = resp.Trailer }
	out.Body = r
	return &out, head, ended
}

// peekBody returns a body and its beginning: what has come when that is enough, or all that is looked at, or bound is over.
// ended says that it is all of the body. enough must not keep what it is given; nil = nothing is.
func peekBody(h *Handler, body io.ReadCloser, bound time.Duration, enough func(head []byte) bool) (whole *refusedBody, head []byte, ended bool) {
	r := &refusedBody{h: h, body: body, more: make(chan struct{}, 1), done: make(chan struct{})}
	go r.readAhead()
	timer := time.NewTimer(bound)
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

// seen is what has been read, of which nothing may have been given yet.
func (r *refusedBody) seen() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ahead
}

func (r *refusedBody) readAhead() {
	defer close(r.done)
	defer r.h.guard("refusal", func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err, r.over = io.ErrUnexpectedEOF, true
	})
	buf := make([]byte, smallBuffer)
	for total := 0; ; {
		n, err := r.body.Read(buf[:min(len(buf), refusalPeek-total)])
		got := buf[:n]
		total += n
		r.mu.Lock()
		r.ahead = append(r.ahead, got...)
		r.err = err
		r.over = err != nil || r.enough || r.closed || total == refusalPeek
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

func (r *refusedBody) Read(p []byte) (int, error) {
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

func (r *refusedBody) take(p []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := copy(p, r.ahead)
	r.ahead = r.ahead[n:]
	return n
}

// Close does not wait for an upstream that says no more.
func (r *refusedBody) Close() error {
	r.mu.Lock()
	r.closed = true
	over := r.over
	r.mu.Unlock()
	if over {
		return r.body.Close()
	}
	if own, ok := r.body.(interface{ Interrupt() }); ok {
		own.Interrupt() // and the goroutine closes it
		return nil
	}
	return r.body.Close() // http.Transport's may be closed while they are read
}
