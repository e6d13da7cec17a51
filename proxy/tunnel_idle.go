package proxy

import (
	"encoding/binary"
	"io"
	"sync"
	"time"
)

// When a door closes, its tunnels end that are idle: in which for so long
// nothing was said. A model that has begun to answer may think for some seconds
// before it goes on. What the client has said last may be a question whose
// answer takes longer, or a sign of life that wants none, which nobody can tell
// here: it is awaited for answerWait, and no longer than the door's drain, of
// which lastCall is left for the ending, so that the tunnel is not counted as
// cut.
const (
	tunnelIdle = 15 * time.Second
	answerWait = time.Minute
	lastCall   = time.Second
)

// talk is what is known of a tunnel whose bytes mean nothing here.
type talk struct {
	fromClient, fromUpstream *frames // of a WebSocket

	mu    sync.Mutex
	at    time.Time // when something was said last
	asked bool      // by the client

	client sync.Mutex // held while something is written to the client; guards fromUpstream
}

// toUpstream and toClient pass on what a side says, and note it.
type (
	toUpstream struct {
		io.Writer
		*talk
	}
	toClient struct {
		io.Writer
		*talk
	}
)

func (w toUpstream) Write(b []byte) (int, error) {
	if w.fromClient.says(b) { // before the answer to it
		w.note(true)
	}
	return w.Writer.Write(b)
}

func (w toClient) Write(b []byte) (int, error) {
	w.client.Lock()
	defer w.client.Unlock()
	n, err := w.Writer.Write(b)
	if w.fromUpstream.says(b[:n]) {
		w.note(false)
	}
	return n, err
}

func (w toUpstream) CloseWrite() error { return closeWrite(w.Writer) }
func (w toClient) CloseWrite() error   { return closeWrite(w.Writer) }

func (t *talk) note(byClient bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.asked = time.Now(), byClient
}

// idle says whether the tunnel is. At the last call what the client has said is
// awaited no more.
func (t *talk) idle(last bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked {
		return last || time.Since(t.at) >= answerWait
	}
	return time.Since(t.at) >= tunnelIdle
}

// falls waits until the door closes and the tunnel is idle, and says whether
// that comes before over is closed. It returns with client locked then: what
// the upstream says from now on comes too late.
func (t *talk) falls(door *closing, over <-chan struct{}) bool {
	select {
	case <-door.begun:
	case <-over:
		return false
	}
	end := time.NewTimer(max(door.drain-lastCall, door.drain/2))
	defer end.Stop()
	look := time.NewTicker(tunnelIdle / 50)
	defer look.Stop()
	for last := false; ; {
		if t.client.TryLock() { // else a client takes its time over what was said
			if t.idle(last) {
				return true
			}
			t.client.Unlock()
		}
		select {
		case <-look.C:
		case <-end.C:
			last = true
		case <-over:
			return false
		}
	}
}

// frames follows the frames of one direction of a WebSocket. A nil one is of
// bytes that are no frames.
type frames struct {
	head []byte // of the frame whose head is coming
	left uint64 // bytes of its payload that are still to come
}

// says takes what comes next, and reports whether any of it is more than a
// control frame.
func (f *frames) says(b []byte) (something bool) {
	if f == nil {
		return len(b) > 0
	}
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, uint64(len(b)))
			f.left -= n
			b = b[n:]
			something = something || !f.control()
			continue
		}
		if f.whole() {
			f.head = f.head[:0]
		}
		f.head = append(f.head, b[0])
		b = b[1:]
		if f.whole() {
			f.left = f.length()
			something = something || !f.control()
		}
	}
	return something
}

// between says whether a frame may begin now.
func (f *frames) between() bool {
	return f != nil && f.left == 0 && (len(f.head) == 0 || f.whole())
}

func (f *frames) control() bool { return f.head[0]&0x08 != 0 }

// extended is how many bytes of length follow the first two of a head.
func (f *frames) extended() int {
	switch f.head[1] & 0x7f {
	case 126:
		return 2
	case 127:
		return 8
	}
	return 0
}

func (f *frames) whole() bool {
	if len(f.head) < 2 {
		return false
	}
	mask := 0
	if f.head[1]&0x80 != 0 {
		mask = 4
	}
	return len(f.head) == 2+f.extended()+mask
}

func (f *frames) length() uint64 {
	switch more := f.head[2:]; f.extended() {
	case 2:
		return uint64(binary.BigEndian.Uint16(more))
	case 8:
		return binary.BigEndian.Uint64(more)
	}
	return uint64(f.head[1] & 0x7f)
}
