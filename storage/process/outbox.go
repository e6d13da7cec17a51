package process

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"sync"
)

// errBusy is returned at the limits of a connection.
var errBusy = unavailable("the store is busy")

var errClosed = errors.New("connection closed")

// message is a message to send.
type message struct {
	call uint32
	kind byte
	body []byte
	tail []byte // follows the body
	sent int    // of the body, or of the tail once that has replaced it
}

// outbox sends messages, one frame of each in turn, so that a large one never
// delays a small one. Putting a message in never waits for the peer.
type outbox struct {
	mu     sync.Mutex
	queue  []*message
	bytes  int
	closed bool
	wake   chan struct{}
	free   *bufferPool // gets the buffers of calls once they are sent; may be nil
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// put queues a message. Calls and answers are refused with errBusy while
// maxHeld bytes wait; the other kinds are a few bytes each and always accepted.
func (o *outbox) put(call uint32, kind byte, body []byte) error {
	return o.putWithTail(call, kind, body, nil)
}

func (o *outbox) putWithTail(call uint32, kind byte, body, tail []byte) error {
	n := len(body) + len(tail)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errClosed
	}
	if (kind == kindCall || kind == kindAnswer) && o.bytes > 0 && o.bytes+n > maxHeld {
		return errBusy
	}
	if kind == kindAnswer && n > maxFrame {
		o.queue = append(o.queue, &message{call: call, kind: kindSize, body: binary.LittleEndian.AppendUint32(nil, uint32(n))})
		o.bytes += 4
	}
	o.queue = append(o.queue, &message{call: call, kind: kind, body: body, tail: tail})
	o.bytes += n
	o.signal()
	return nil
}

// drop removes a call of which nothing has been sent, and reports whether it
// did.
func (o *outbox) drop(call uint32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, m := range o.queue {
		if m.call == call && m.kind == kindCall && m.sent == 0 && !o.closed {
			o.bytes -= len(m.body)
			o.queue = append(o.queue[:i], o.queue[i+1:]...)
			return true
		}
	}
	return false
}

// close makes run return once everything has been sent.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.signal()
	o.mu.Unlock()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run sends until close, or until sending fails.
func (o *outbox) run(to io.Writer) error {
	w := bufio.NewWriterSize(to, 16<<10)
	var head [frameHeadSize]byte
	for {
		o.mu.Lock()
		if len(o.queue) == 0 {
			o.queue = nil // releases the array
			closed := o.closed
			o.mu.Unlock()
			if err := w.Flush(); err != nil || closed {
				return err
			}
			<-o.wake
			continue
		}
		m := o.queue[0]
		o.queue = o.queue[1:]
		if m.sent == len(m.body) && len(m.tail) > 0 {
			m.body, m.tail, m.sent = m.tail, nil, 0
		}
		piece := m.body[m.sent:]
		piece = piece[:min(len(piece), maxFrame)]
		m.sent += len(piece)
		more := m.sent < len(m.body) || len(m.tail) > 0
		o.bytes -= len(piece)
		if more {
			o.queue = append(o.queue, m)
		}
		o.mu.Unlock()
		if _, err := w.Write(appendFrameHead(head[:0], m.call, m.kind, more, len(piece))); err != nil {
			return err
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
		if m.kind == kindCall && !more && o.free != nil {
			o.free.put(m.body)
		}
	}
}

// bufferPool reuses the buffers that calls are encoded in: a turn makes several
// calls of some KiB each. The outbox puts a buffer back once it is sent;
// buffers of calls that were never sent are left to the garbage collector.
type bufferPool struct{ pool sync.Pool }

// The sizes of buffers that are kept, in bytes.
const (
	minBuffer = 4 << 10
	maxBuffer = 256 << 10
)

// get returns an empty message: callHeadSize bytes, and room for capacity bytes
// of arguments.
func (f *bufferPool) get(capacity int) []byte {
	n := callHeadSize + capacity
	if b, ok := f.pool.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:callHeadSize]
	}
	if n <= maxBuffer { // rounded up, so that it suits other calls too
		n = max(minBuffer, 1<<bits.Len(uint(n-1)))
	}
	return make([]byte, callHeadSize, n)
}

func (f *bufferPool) put(b []byte) {
	if cap(b) >= minBuffer && cap(b) <= maxBuffer {
		f.pool.Put(&b)
	}
}
