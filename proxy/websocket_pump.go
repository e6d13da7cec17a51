package proxy

import (
	"bufio"
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/gobwas/ws"
)

// lane is held while something is written to one side of a WebSocket.
type lane struct {
	sync.Mutex
	open   bool // a message has begun and not ended: no other may come in between
	closed bool // nothing is written any more
	moved  sync.Cond
}

func newLane() *lane {
	l := &lane{}
	l.moved.L = l
	return l
}

// free waits until a message may begin. It reports false if none ever may. The
// caller holds l.
func (l *lane) free() bool {
	for l.open && !l.closed {
		l.moved.Wait()
	}
	return !l.closed
}

func (l *lane) release() {
	l.moved.Broadcast()
	l.Unlock()
}

func (l *lane) close() {
	l.Lock()
	l.closed = true
	l.release()
}

// pump passes the messages of a WebSocket from one side to the other. Text
// messages of up to limit bytes are given to change, whose pieces are sent
// instead; nil leaves the message unchanged, an empty list drops it. missed is
// called for each text message that change does not see because it is over the
// limit, in too many frames, or beyond the budget, to which a message is
// charged as it arrives.
type pump struct {
	src    io.Reader
	dst    io.Writer
	limit  int
	budget *budget
	to     *lane // held while something is written to dst
	change func(text []byte) [][]byte
	missed func()
	// A message that has begun and then brings nothing for idle ends the
	// WebSocket: late is called.
	idle time.Duration
	late func()

	in      *bufio.Reader
	timer   *time.Timer
	waits   bool // a read is for the rest of what has begun
	total   int64
	held    []ws.Header // frames of the message that is being read
	text    []byte      // their payloads, in body
	body    *body
	passing bool // the rest of the message passes unread
}

// run returns the bytes of all payloads once either side has ended.
func (p *pump) run() int64 {
	p.in = bufio.NewReader(pumpReader{p})
	p.timer = time.AfterFunc(p.idle, p.late)
	p.timer.Stop()
	defer p.drop()
	for p.frame() {
	}
	return p.total
}

// pumpReader is p.src under p's limit.
type pumpReader struct{ p *pump }

func (r pumpReader) Read(b []byte) (int, error) {
	if r.p.waits {
		r.p.timer.Reset(r.p.idle)
		defer r.p.timer.Stop()
	}
	return r.p.src.Read(b)
}

// frame passes one frame on, or holds it. It reports false at the end.
func (p *pump) frame() bool {
	p.waits = len(p.held) > 0
	h, err := ws.ReadHeader(p.in)
	if err != nil {
		return false
	}
	p.waits = true
	p.total += h.Length
	text := h.OpCode == ws.OpText || h.OpCode == ws.OpContinuation && len(p.held) > 0
	if h.OpCode.IsControl() || !text || p.passing || h.Rsv != 0 || h.Length > int64(p.limit-len(p.text)) || len(p.held) == maxFragments {
		return p.pass(h, text, nil)
	}
	at := len(p.text)
	whole, err := p.hold(h.Length)
	if err != nil {
		return false
	}
	if !whole {
		came := p.text[at:]
		p.text = p.text[:at]
		return p.pass(h, true, came)
	}
	if h.Masked {
		ws.Cipher(p.text[at:], h.Mask, 0)
	}
	if p.held = append(p.held, h); !h.Fin {
		return true
	}
	p.to.Lock()
	defer p.to.release()
	defer p.drop()
	switch pieces := p.change(p.text); {
	case pieces == nil:
		return p.flush()
	case len(pieces) > 0:
		return writeMessage(p.dst, p.held[0].Masked, pieces) == nil
	}
	return true
}

// hold appends a payload of n bytes to p.text, charging for its memory as it
// arrives. whole is false if the budget ends first.
func (p *pump) hold(n int64) (whole bool, err error) {
	if p.body == nil {
		p.body = newBody(p.budget)
	}
	end := len(p.text) + int(n)
	most := end
	if len(p.held) > 0 { // more fragments may follow, and each would be copied
		most = max(end, min(2*cap(p.text), p.limit))
	}
	for len(p.text) < end {
		if len(p.text) == cap(p.text) {
			if !p.body.more(int64(most)) {
				return false, nil
			}
			p.text = p.body.bytes
		}
		m, err := p.in.Read(p.text[len(p.text):min(cap(p.text), end)])
		p.text = p.text[:len(p.text)+m]
		p.body.bytes = p.text
		if err != nil && len(p.text) < end {
			return false, err
		}
	}
	return true, nil
}

// pass copies one frame unchanged, of whose payload the bytes in came were read
// already. text means that it belongs to a message that change should have
// seen.
func (p *pump) pass(h ws.Header, text bool, came []byte) bool {
	if text {
		p.missed()
	}
	p.to.Lock()
	defer p.to.release()
	if !h.OpCode.IsControl() {
		p.passing = !h.Fin
		p.to.open = p.passing
		if !p.flush() {
			return false
		}
		defer p.drop()
	}
	if err := ws.WriteHeader(p.dst, h); err != nil {
		return false
	}
	if _, err := p.dst.Write(came); err != nil {
		return false
	}
	_, err := io.CopyN(p.dst, p.in, h.Length-int64(len(came)))
	return err == nil
}

// flush writes the held frames unchanged.
func (p *pump) flush() bool {
	rest := p.text
	for _, h := range p.held {
		if writeFrame(p.dst, h, rest[:h.Length]) != nil {
			return false
		}
		rest = rest[h.Length:]
	}
	return true
}

// drop drops what is held.
func (p *pump) drop() {
	if p.body != nil {
		p.body.lease.Release()
	}
	p.held, p.text, p.body = nil, nil, nil
}

// writeFrame writes one frame, whose payload is the pieces. It masks them in a
// buffer of its own, which a short frame leaves in one piece.
func writeFrame(dst io.Writer, h ws.Header, pieces ...[]byte) error {
	buf := largeBuffers.Get().(*[largeBuffer]byte)
	defer largeBuffers.Put(buf)
	head := bytes.NewBuffer(buf[:0])
	if err := ws.WriteHeader(head, h); err != nil {
		return err
	}
	used, sent := head.Len(), 0
	for _, p := range pieces {
		for len(p) > 0 {
			if used == len(buf) {
				if _, err := dst.Write(buf[:]); err != nil {
					return err
				}
				used = 0
			}
			n := copy(buf[used:], p)
			if h.Masked {
				ws.Cipher(buf[used:used+n], h.Mask, sent)
			}
			p, used, sent = p[n:], used+n, sent+n
		}
	}
	_, err := dst.Write(buf[:used])
	return err
}

// writeMessage writes pieces as one message of one frame.
func writeMessage(dst io.Writer, masked bool, pieces [][]byte) error {
	h := ws.Header{Fin: true, OpCode: ws.OpText, Masked: masked}
	for _, p := range pieces {
		h.Length += int64(len(p))
	}
	if masked {
		h.Mask = ws.NewMask()
	}
	return writeFrame(dst, h, pieces...)
}
