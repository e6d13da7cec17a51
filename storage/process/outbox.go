package process

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// errBusy: more is under way than a connection takes.
var errBusy = unavailable("the store is busy")

// message waits to be sent.
type message struct {
	call uint32
	kind byte
	body []byte
	tail []byte // what follows it
	sent int    // of the body, or of the tail when that has taken its place
}

// outbox sends messages, a frame of each in turn, so that a large one never holds up a small one. Nobody who puts one in
// waits for the peer.
type outbox struct {
	mu     sync.Mutex
	queue  []*message
	bytes  int
	closed bool
	wake   chan struct{}
	free   *buffers // gets calls back when they are sent; nil = nobody wants them
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// put takes a message, unless too many bytes wait already; those of the connection itself, a few bytes each, it always takes.
func (o *outbox) put(call uint32, kind byte, body []byte) error {
	return o.putBoth(call, kind, body, nil)
}

// putBoth is put of a message in two pieces.
func (o *outbox) putBoth(call uint32, kind byte, body, tail []byte) error {
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

// drop takes a call out of which nothing has been sent yet; false means that it is on its way.
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

// close lets run return once everything has been sent.
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

var errClosed = errors.New("connection closed")

// run sends until close, or until sending fails.
func (o *outbox) run(to io.Writer) error {
	w := bufio.NewWriterSize(to, 16<<10)
	var head [headSize]byte
	for {
		o.mu.Lock()
		if len(o.queue) == 0 {
			o.queue = nil // lets go of the array
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
		if _, err := w.Write(appendHead(head[:0], m.call, m.kind, more, len(piece))); err != nil {
			return err
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
		if m.kind == kindCall && !more && o.free != nil {
			o.free.give(m.body)
		}
	}
}
