package proxy

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// openBody is the body of an HTTP/1 request that is streamed to the upstream.
// The upstream may answer before all of the body has arrived, for instance with
// a refusal, and the client should get that answer at once. By default,
// net/http reads a body to its end, or 256 KiB of it, before it writes the head
// of an answer, and waits for a read in progress.
//
// If the answer comes before the end of the body, and only then:
//   - The answer is sent like any other while the upstream gets the rest of the
//     body. It closes the connection, because where the next request begins on it
//     is unknown.
//   - After the answer, nothing reads the body any more: net/http gives its reader
//     to another connection. What the client still sends is accepted for a while,
//     up to 256 KiB, so that closing the connection does not destroy the answer. A
//     client that sends more before it reads may lose the answer, as with any
//     server that does not take everything.
//   - A client that sends nothing is ended by the read deadline of guardedBody, and
//     with it the answer, if that is still in progress. A client that takes nothing
//     is ended by the write deadline of relay.
//
// Over HTTP/2 none of this is needed.
type openBody struct {
	io.Reader // what is left of in
	in        io.Closer
	ctl       *http.ResponseController
	turn      chan struct{} // full while a Read is under way
	ended     atomic.Bool   // there is nothing more to read
	over      atomic.Bool   // nor is anything to be read
}

func newOpenBody(w http.ResponseWriter, in *http.Request, src io.Reader) *openBody {
	return &openBody{Reader: src, in: in.Body, ctl: http.NewResponseController(w), turn: make(chan struct{}, 1)}
}

// abandonGrace is how long a read of the client's body may go on after an early
// answer.
const abandonGrace = 50 * time.Millisecond

// lingering is how long what a client sends is taken after an early answer.
const lingering = 500 * time.Millisecond

func (b *openBody) Read(p []byte) (int, error) {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if b.over.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.Reader.Read(p)
	if err != nil {
		b.ended.Store(true)
	}
	return n, err
}

// Close keeps what follows from being read. It does not wait for the client, as
// closing the server's own body does.
func (b *openBody) Close() error {
	b.over.Store(true)
	return nil
}

// answer sets the headers of an answer that does not wait for the end of the
// body, and reports whether it is one. It is not if the body has ended, or if b
// is nil.
func (b *openBody) answer(h http.Header) (early bool) {
	if b == nil || b.ended.Load() || b.ctl.EnableFullDuplex() != nil {
		return false
	}
	h["Connection"] = []string{"close"}
	return true
}

// abandon is called when an early answer has been written, as the handler's
// last act: once that has returned, the server would end a Read that is under
// way, and would wait for the rest of the body without a deadline.
func (b *openBody) abandon() {
	b.over.Store(true)
	grace := time.NewTimer(abandonGrace)
	defer grace.Stop()
	select {
	case b.turn <- struct{}{}: // the client sends, or nobody reads
		_ = b.ctl.SetReadDeadline(time.Now().Add(lingering)) // for what the server takes
	case <-grace.C:
		_ = b.ctl.SetReadDeadline(time.Now())
		b.turn <- struct{}{}
		_ = b.in.Close() // at once, after that deadline
	}
	<-b.turn
}
