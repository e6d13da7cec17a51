package proxy

import (
	"errors"
	"io"
	"sync"
)

// h1Body is the body of a response on an h1Conn, which it lets go of at its end. It is used by one goroutine, but for
// interrupt.
type h1Body struct {
	c    *h1Conn       // nil = let go of
	src  io.ReadCloser // net/http's, which knows the framing; nil = left bytes of the connection are the body
	left int64
	stop func() bool // ends the watch over the request's context
	keep bool        // the connection may serve again
	eof  bool        // src has ended
	err  error       // of reads after the end

	mu          sync.Mutex // held to let go of c, and by interrupt
	interrupted bool
}

var errH1BodyClosed = errors.New("response body closed")

func (b *h1Body) Read(p []byte) (int, error) {
	if b.c == nil {
		return 0, b.err
	}
	n, err := 0, io.EOF
	if !b.eof {
		b.c.borrow()
		n, err = b.read(p)
	}
	if err == io.EOF && n > 0 && b.c.upload != nil {
		b.eof = true // the last bytes do not wait for the request to be sent
		return n, nil
	}
	if err != nil {
		b.err = err
		b.end(err == io.EOF)
	}
	return n, err
}

// read is src.Read.
func (b *h1Body) read(p []byte) (int, error) {
	if b.src != nil {
		return b.src.Read(p)
	}
	n, err := b.c.br.Read(p[:min(int64(len(p)), b.left)])
	switch b.left -= int64(n); {
	case b.left == 0:
		err = io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// ready says whether Read has something to go on with and will not have to wait, or hardly.
func (b *h1Body) ready() bool { return b.c == nil || b.eof || b.c.br.Buffered() > 0 }

// await waits until it has. Neither its connection nor the caller needs a buffer meanwhile. much says that the caller's is
// larger than the connection's.
func (b *h1Body) await(much bool) {
	if !b.ready() {
		_ = b.c.await(much) // Read meets the same error
	}
}

// Close lets go of the connection, which serves again only where the rest of the body is already here. It does not wait
// for the upstream: what is here may end in the middle of a chunk's frame.
func (b *h1Body) Close() error {
	if b.c == nil {
		return nil
	}
	b.err = errH1BodyClosed
	b.c.headLeft = 0 // nothing more is read from the socket
	var sink [512]byte
	for b.c != nil && b.c.br.Buffered() > 0 {
		if _, err := b.Read(sink[:]); err != nil {
			return nil
		}
	}
	if b.c != nil {
		b.end(false)
	}
	return nil
}

// interrupt ends a Read that is under way, and all that follow. Any goroutine may call it, at any time.
func (b *h1Body) interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.interrupted = true
	if b.c != nil {
		b.c.close()
	}
}

// letGo returns the connection, and whether it has not been interrupted.
func (b *h1Body) letGo() (c *h1Conn, whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, b.c = b.c, nil
	return c, !b.interrupted
}

// end lets go of the connection. whole says that the body was read to its end.
func (b *h1Body) end(whole bool) {
	c, open := b.letGo()
	keep := whole && open && b.keep && c.ended == nil && c.br.Buffered() == 0 && c.upload.sent()
	keep = b.stop() && keep
	c.giveBack()
	c.upload = nil
	if !keep {
		c.close()
		return
	}
	c.client.idle.put(c)
}
