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

// responseBody is the body of a response on a conn, which it releases at its
// end. One goroutine uses it, except for Interrupt.
type responseBody struct {
	c    *conn          // nil = released
	src  io.ReadCloser  // net/http's, which knows the framing; nil = framed by the fields below
	of   *http.Response // whose body is chunked, and gets the trailers; nil = the next left bytes of the connection are the body
	left int64
	data io.Reader   // of the chunks; nil = not read yet
	stop func() bool // ends the watch over the request's context
	keep bool        // the connection may serve again
	eof  bool        // src has ended
	err  error       // of reads after the end

	mu          sync.Mutex // held to release c, and by Interrupt
	interrupted bool
}

var errH1BodyClosed = errors.New("response body closed")

func (b *responseBody) Read(p []byte) (int, error) {
	if b.c == nil {
		return 0, b.err
	}
	n, err := 0, io.EOF
	if !b.eof {
		b.c.borrow()
		n, err = b.read(p)
	}
	if err == io.EOF && n > 0 && b.c.upload != nil {
		b.eof = true // the last bytes need not wait until the request has been sent
		return n, nil
	}
	if err != nil {
		b.err = err
		b.end(err == io.EOF)
	}
	return n, err
}

// read reads from the body, by its framing.
func (b *responseBody) read(p []byte) (int, error) {
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
func (b *responseBody) readChunks(p []byte) (int, error) {
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

// Errors of trailers, with net/http's texts.
var (
	errTrailersCut  = errors.New("unexpected EOF reading trailer")
	errTrailersLong = errors.New("suspiciously long trailer after chunked body")
)

// readTrailers reads what follows the last chunk. It must fit into the buffer,
// or it might have no end.
func (b *responseBody) readTrailers() error {
	br := &b.c.br
	switch end, err := br.Peek(len(crlf)); {
	case bytes.Equal(end, crlf): // the usual case
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

// Ready reports whether Read can continue without waiting, or nearly.
func (b *responseBody) Ready() bool { return b.c == nil || b.eof || b.c.br.Buffered() > 0 }

// Await waits until Ready. Neither the connection nor the caller needs a buffer
// meanwhile. much means that the caller's buffer is larger than the
// connection's.
func (b *responseBody) Await(much bool) {
	if !b.Ready() {
		_ = b.c.await(much) // Read meets the same error
	}
}

// Close releases the connection, which serves again only if the rest of the
// body has already arrived. It does not wait for the upstream, because what has
// arrived may end inside the frame of a chunk.
func (b *responseBody) Close() error {
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

// Interrupt ends a Read in progress and all later ones. Any goroutine may call
// it, at any time.
func (b *responseBody) Interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.interrupted = true
	if b.c != nil {
		b.c.close()
	}
}

// release returns the connection, and whether it has not been interrupted.
func (b *responseBody) release() (c *conn, whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, b.c = b.c, nil
	return c, !b.interrupted
}

// end releases the connection. whole means that the body was read to its end.
func (b *responseBody) end(whole bool) {
	c, open := b.release()
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
