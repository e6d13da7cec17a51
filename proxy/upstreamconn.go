package proxy

import (
	"io"
	"net"
	"net/http/httptrace"
)

// upstreamConn is a plain connection to an upstream that sends a request with a body in memory, head and all, in one
// system call and without copying the body. http.Transport by itself writes the head alone, which wakes the upstream
// twice, and copies the body through buffers.
//
// Only the transport's write loop writes to it, and holdHead runs before it does.
type upstreamConn struct {
	*net.TCPConn
	hold bool   // the next write is a head that a body in memory follows
	head []byte // held; its memory is kept for the next request
}

// maxHeldHead bounds the memory that an idle connection keeps for heads.
const maxHeldHead = upstreamWriteBuffer

// holdHead is the trace hook of requests with a body in memory. Nothing else may set hold: without a body to follow, the
// head would never leave.
func holdHead(info httptrace.GotConnInfo) {
	if c, ok := info.Conn.(*upstreamConn); ok {
		c.hold = true
	}
}

func (c *upstreamConn) Write(p []byte) (int, error) {
	if c.hold {
		c.hold = false
		if len(p) <= maxHeldHead {
			c.head = append(c.head[:0], p...)
			return len(p), nil
		}
	}
	if len(c.head) == 0 {
		return c.TCPConn.Write(p)
	}
	n, err := c.send(net.Buffers{c.head, p})
	return int(max(n, 0)), err // a writer may not take back
}

// ReadFrom sends r, which is a request's body.
func (c *upstreamConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if pieces, ok := limited.R.(*pieceReader); ok {
			if !pieces.begin() {
				return c.send(nil)
			}
			defer pieces.end()
			var room [5][]byte // head, and the pieces of a body with one insertion, with one to spare
			bufs, n := pieces.buffers(append(room[:0], c.head))
			limited.N -= n
			return c.send(bufs)
		}
	}
	if len(c.head) > 0 {
		if n, err := c.send(net.Buffers{c.head}); err != nil {
			return n, err
		}
	}
	buf := largeBuffers.Get().(*[largeBuffer]byte)
	defer largeBuffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c.TCPConn}, r, buf[:])
}

// send writes bufs, the first of which is the held head, and returns the bytes written without the head's, which Write
// has reported before. Where the connection takes nothing at all that report is taken back by a negative count: the
// transport then knows that nothing was sent, and tries another connection.
func (c *upstreamConn) send(bufs net.Buffers) (int64, error) {
	head := int64(len(c.head))
	c.head = c.head[:0]
	if bufs == nil {
		return -head, errBodyClosed
	}
	n, err := bufs.WriteTo(c.TCPConn)
	return n - head, err
}
