package process

import (
	"math/bits"
	"sync"
)

// buffers are those that the arguments of calls are written in: a turn takes some calls, of some KiB each. They go to the
// outbox with the call and come back once it is sent; those of calls that were not sent are the garbage collector's.
type buffers struct{ pool sync.Pool }

// Bounds of a buffer that is kept, in bytes.
const (
	leastBuffer = 4 << 10
	mostBuffer  = 256 << 10
)

// start returns an empty message with room for so many bytes of arguments behind its head.
func (f *buffers) start(capacity int) []byte {
	n := callHead + capacity
	if b, ok := f.pool.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:callHead]
	}
	if n <= mostBuffer { // a size that others can use
		n = max(leastBuffer, 1<<bits.Len(uint(n-1)))
	}
	return make([]byte, callHead, n)
}

// give takes a buffer back that nobody uses any more.
func (f *buffers) give(b []byte) {
	if cap(b) >= leastBuffer && cap(b) <= mostBuffer {
		f.pool.Put(&b)
	}
}
