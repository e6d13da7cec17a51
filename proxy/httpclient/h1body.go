package httpclient

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"sync"
)

// h1Body is the body of a response on an h1Conn, which it lets go of at its
// end. It is used by one goroutine, but for Interrupt.
type h1Body struct {
	c    *h1Conn        // nil = let go of
	src  io.ReadCloser  // net/http's, which knows the framing; nil = what follows does
	of   *http.Response // whose body is chunked, and gets the trailers; nil = left bytes of the connection are the body
	left int64
	data io.Reader   // of the chunks; nil = none has been read yet
	stop func() bool // ends the watch over the request's context
	keep bool        // the connection may serve again
	eof  bool        // src has ended
	err  error       // of reads after the end

	mu          sync.Mutex // held to let go of c, and by Interrupt
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
	switch {
	case b.src != nil:
		return b.src.Read(p)
	case b.of != nil:
		return b.readChunks(p)
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

// readChunks is read for a chunked body.
func (b *h1Body) readChunks(p []byte) (int, error) {
	if b.data == nil {
		b.data = httputil.NewChunkedReader(&b.c.br)
	}
	n, err := b.data.Read(p)
	if err == io.EOF {
		if terr := b.readTrailers(); terr != nil {
			err = terr
		}
	}
	return n, err
}

// Errors of trailers. The texts are net/http's.
var (
	errTrailersCut  = errors.New("unexpected EOF reading trailer")
	errTrailersLong = errors.New("suspiciously long trailer after chunked body")
)

// readTrailers reads what follows the last chunk. It has to fit into the
// buffer, or it might have no end.
func (b *h1Body) readTrailers() error {
	br := &b.c.br
	switch end, err := br.Peek(len(crlf)); {
	case bytes.Equal(end, crlf): // as a rule
		_, _ = br.Discard(len(crlf))
		return nil
	case len(end) < len(crlf):
		return errTrailersCut
	case err != nil:
		return err
	}
	for n := len(headEnd); ; n++ {
		seen, err := br.Peek(n)
		if bytes.HasSuffix(seen, headEnd) {
			break
		}
		if err != nil {
			return errTrailersLong
		}
	}
	trailers, err := textproto.NewReader(br).ReadMIMEHeader()
	if err == io.EOF {
		return errTrailersCut
	}
	if err == nil {
		b.of.Trailer = http.Header(trailers)
	}
	return err
}

var headEnd = []byte("\r\n\r\n")

// Ready reports whether Read has something to go on with and will not have to
// wait, or hardly.
func (b *h1Body) Ready() bool { return b.c == nil || b.eof || b.c.br.Buffered() > 0 }

// Await waits until it has. Neither its connection nor the caller needs a
// buffer meanwhile. much says that the caller's is larger than the
// connection's.
func (b *h1Body) Await(much bool) {
	if !b.Ready() {
		_ = b.c.await(much) // Read meets the same error
	}
}

// Close lets go of the connection, which serves again only where the rest of
// the body is already here. It does not wait for the upstream: what is here may
// end in the middle of a chunk's frame.
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

// Interrupt ends a Read that is under way, and all that follow. Any goroutine
// may call it, at any time.
func (b *h1Body) Interrupt() {
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
