package listener

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gobwas/ws"
)

// When a listener closes, its idle tunnels end: those without activity for so
// long. A model that has begun to answer may think for some seconds before it
// continues. What the client sent last may be a question whose answer takes
// longer, or a keep-alive, which cannot be distinguished here. It is awaited
// for answerWait, and no longer than the listener's drain, of which lastCall is
// left for the ending, so that the tunnel does not count as cut.
const (
	tunnelIdle = 15 * time.Second
	answerWait = time.Minute
	lastCall   = time.Second
)

// tunnelActivity tracks the activity of a tunnel whose bytes are not
// interpreted.
type tunnelActivity struct {
	fromClient, fromUpstream *frames // of a WebSocket

	mu    sync.Mutex
	at    time.Time // of the last activity
	asked bool      // it was the client's

	client sync.Mutex // held while something is written to the client; guards fromUpstream
}

// toUpstream and toClient pass bytes on and record the activity.
type (
	toUpstream struct {
		io.Writer
		*tunnelActivity
	}
	toClient struct {
		io.Writer
		*tunnelActivity
	}
)

func (w toUpstream) Write(b []byte) (int, error) {
	if w.fromClient.hasData(b) { // before the answer to it can arrive
		w.note(true)
	}
	return w.Writer.Write(b)
}

func (w toClient) Write(b []byte) (int, error) {
	w.client.Lock()
	defer w.client.Unlock()
	n, err := w.Writer.Write(b)
	if w.fromUpstream.hasData(b[:n]) {
		w.note(false)
	}
	return n, err
}

func (w toUpstream) CloseWrite() error { return CloseWrite(w.Writer) }
func (w toClient) CloseWrite() error   { return CloseWrite(w.Writer) }

func (t *tunnelActivity) note(byClient bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.asked = time.Now(), byClient
}

// idle reports whether the tunnel is idle. With last, an answer to the client
// is no longer awaited.
func (t *tunnelActivity) idle(last bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked {
		return last || time.Since(t.at) >= answerWait
	}
	return time.Since(t.at) >= tunnelIdle
}

// awaitIdle waits until the listener closes and the tunnel is idle. It reports
// whether that happens before over is closed. It then returns with client
// locked, because what the upstream sends from now on is too late.
func (t *tunnelActivity) awaitIdle(listener *closing, over <-chan struct{}) bool {
	select {
	case <-listener.begun:
	case <-over:
		return false
	}
	end := time.NewTimer(max(listener.drain-lastCall, listener.drain/2))
	defer end.Stop()
	look := time.NewTicker(tunnelIdle / 50)
	defer look.Stop()
	for last := false; ; {
		if t.client.TryLock() { // otherwise the client is slow to take what was sent
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

// frames follows the frames of one direction of a WebSocket. A nil frames is
// for bytes that are not frames.
type frames struct {
	head []byte // of the frame whose head is arriving
	last ws.Header
	left int64 // bytes of the frame's payload that have not arrived
}

// hasData takes the next bytes, and reports whether any of them belong to other
// than control frames. Bytes that are no frame count as data.
func (f *frames) hasData(b []byte) (something bool) {
	if f == nil {
		return len(b) > 0
	}
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, int64(len(b)))
			f.left -= n
			b = b[n:]
			something = something || !f.last.OpCode.IsControl()
			continue
		}
		f.head = append(f.head, b[0])
		b = b[1:]
		h, err := ws.ReadHeader(bytes.NewReader(f.head))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			continue // the head has not arrived whole
		}
		f.head = f.head[:0]
		if err != nil {
			something = true
			continue
		}
		f.last, f.left = h, h.Length
		something = something || !h.OpCode.IsControl()
	}
	return something
}

// between reports whether a frame may begin now.
func (f *frames) between() bool { return f != nil && f.left == 0 && len(f.head) == 0 }

// WriteGoingAway sends a client the close frame of a server that goes away.
func WriteGoingAway(client io.Writer) error {
	return ws.WriteFrame(client, ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusGoingAway, "")))
}
