package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// errTakesNothing ends a response whose client has taken nothing for
// StreamConfig.WriteIdle.
var errTakesNothing = errors.New("client took nothing")

// writeBound ends a response whose client takes nothing. Over HTTP/1 it uses
// the connection's write deadline, which affects only writes and is moved as
// rarely as possible. Over HTTP/2 a deadline that passes resets the stream even
// if nothing is being written, as while the upstream is silent; there it uses a
// timer that runs during writes only. If not even the reset can be sent, the
// connection ends (listener.Config.WriteIdle), and with it the write.
type writeBound struct {
	ctl   http.ResponseController
	idle  time.Duration
	armed time.Time // HTTP/1

	stream *streamBound // HTTP/2
}

func newWriteBound(ctl http.ResponseController, http2 bool, idle time.Duration) writeBound {
	b := writeBound{ctl: ctl, idle: idle}
	if http2 {
		b.stream = &streamBound{ctl: ctl, idle: idle}
	}
	return b
}

// begin must be called before a write.
func (b *writeBound) begin() {
	if b.stream != nil {
		b.stream.begin()
		return
	}
	if now := time.Now(); now.Sub(b.armed) > b.idle/4 {
		b.armed = now
		_ = b.ctl.SetWriteDeadline(now.Add(b.idle)) // a writer that can't has no limit
	}
}

// end must be called after a write, with its error, and returns what the error
// means.
func (b *writeBound) end(err error) error {
	late := b.stream != nil && b.stream.end()
	if err != nil && (late || errors.Is(err, os.ErrDeadlineExceeded)) {
		return fmt.Errorf("%w: %w", errTakesNothing, err)
	}
	return err
}

// last must be called when only the end of the response is left to write, which
// the server does.
func (b *writeBound) last() {
	if !b.armed.IsZero() {
		b.begin()
	}
}

// drop must be called when the handler returns.
func (b *writeBound) drop() {
	if b.stream != nil {
		b.stream.drop()
	}
}

// streamBound is a writeBound of an HTTP/2 stream.
type streamBound struct {
	idle time.Duration

	mu      sync.Mutex
	ctl     http.ResponseController // zero when dropped, because it must not be used after its handler has returned
	timer   *time.Timer
	writing bool
	late    bool
}

func (s *streamBound) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = true
	if s.timer == nil {
		s.timer = time.AfterFunc(s.idle, s.fire)
	} else {
		s.timer.Reset(s.idle)
	}
}

// end reports whether the limit was exceeded.
func (s *streamBound) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	s.timer.Stop()
	return s.late
}

func (s *streamBound) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctl != (http.ResponseController{}) && s.writing {
		s.late = true
		_ = s.ctl.SetWriteDeadline(longAgo) // resets the stream at once
	}
}

func (s *streamBound) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctl = http.ResponseController{}
	if s.timer != nil {
		s.timer.Stop()
	}
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)
