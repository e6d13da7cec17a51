package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// doorBody is the body of a request on a doorConn: left bytes of the connection. Any goroutine may read or close it. Close waits for a
// read that is under way.
type doorBody struct {
	c *doorConn

	mu     sync.Mutex
	left   int64
	closed bool
	err    error // of all reads from now on
}

// Read implements io.Reader. The last bytes come with io.EOF.
func (b *doorBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read(p)
}

// read is Read. Needs b.mu.
func (b *doorBody) read(p []byte) (int, error) {
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	}
	n, err := b.c.read(p[:min(int64(len(p)), b.left)])
	switch b.left -= int64(n); {
	case b.left == 0:
		b.err = io.EOF
		b.c.listen()
	case err == io.EOF:
		b.err = io.ErrUnexpectedEOF
	default:
		b.err = err
	}
	return n, b.err
}

// come says whether all that is left of the body has come and waits to be read. Where that can't be known it says no.
func (b *doorBody) come() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.closed && b.err == nil && b.c.waiting() >= b.left
}

// Close takes what is left of the body, where that is little enough, as net/http's does.
func (b *doorBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	b.closed = true
	return nil
}

// mostDrained is how much of a body that nobody wants is taken, in bytes, so that the connection can serve again, or its end does not
// take the answer with it. It is net/http's.
const mostDrained = 256 << 10

// take reads what is left. Needs b.mu.
func (b *doorBody) take() {
	if b.left == 0 || b.left > mostDrained || b.closed || b.err != nil {
		return
	}
	sink := largeBuffers.Get().(*[largeBuffer]byte)
	defer largeBuffers.Put(sink)
	for err := error(nil); err == nil; {
		_, err = b.read(sink[:])
	}
}

// drain takes what is left and returns how much is left even so.
func (b *doorBody) drain() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	return b.left
}

// end keeps anything more from being read.
func (b *doorBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// mostAtOnce bounds one call that copies to or from a socket behind the scheduler's back, in bytes. It takes some 100 us, for which a
// collection may have to wait: told of it, the scheduler would give the processor away within 20 us, and whoever comes back finds
// its caches full of another's body.
const mostAtOnce = 512 << 10

// bodyReader reads from a socket for doorConn.read, one read at a time.
type bodyReader struct {
	look func(fd uintptr) bool // readNow
	p    []byte
	n    int
	err  error
}

// read waits for what there is. Of a plain connection it is copied without a word to the scheduler, see mostAtOnce.
func (b *bodyReader) read(c *doorConn, p []byte) (int, error) {
	if c.tls != nil {
		return c.tls.Read(p)
	}
	b.p = p[:min(len(p), mostAtOnce)]
	if err := c.raw.Read(b.look); err != nil {
		b.n, b.err = 0, err
	}
	b.p = nil
	return b.n, b.err
}

func (b *bodyReader) readNow(fd uintptr) bool {
	b.n, b.err = readNow(fd, b.p)
	return !errors.Is(b.err, errNothing)
}
