package proxy

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// Bounds of what is read of a refusal to learn why: in bytes, and in time from its head. Over either, what has come
// decides; where the refusal then goes to the client, it goes as it is, and the rest streams after it.
const (
	refusalPeek = 64 << 10
	refusalTime = time.Second
)

// refusedBody is the body of an answer whose beginning was looked at. It is the body's, byte for byte. A goroutine reads
// ahead until the peek is over; where it stands in a read then, it ends with that. Read and Close are for one goroutine.
type refusedBody struct {
	h    *Handler // counts a panic
	body io.ReadCloser
	done chan struct{} // closed when nobody reads ahead any more

	mu     sync.Mutex
	ahead  []byte // read and not given yet
	err    error  // that the body ended with
	enough bool   // no further read
	over   bool   // the goroutine leaves body alone
	closed bool
}

// peekRefusal returns the beginning of a body and, in its place, the whole of it.
func peekRefusal(h *Handler, body io.ReadCloser) ([]byte, io.ReadCloser) {
	r := &refusedBody{h: h, body: body, done: make(chan struct{})}
	go r.readAhead()
	timer := time.NewTimer(refusalTime)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enough = true
	return bytes.Clone(r.ahead), r
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
	if r.err != nil {
		return 0, r.err
	}
	return r.body.Read(p)
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
	if own, ok := r.body.(*h1Body); ok {
		own.interrupt() // and the goroutine closes it
		return nil
	}
	return r.body.Close() // http.Transport's may be closed while they are read
}
