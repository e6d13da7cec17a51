package process

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// callHeadSize is the size of what precedes the arguments of a call: the
// opcode, and in 8 bytes the remaining time in microseconds, 0 = unlimited.
const callHeadSize = 9

// link is the client's end of one connection.
type link struct {
	conn net.Conn
	in   *frameReader
	out  *outbox

	mu        sync.Mutex
	calls     map[uint32]*pendingCall
	next      uint32
	down      error     // what calls return immediately; nil = they are sent
	closed    bool      // down will not be cleared again
	pinged    time.Time // when the unanswered ping was sent; zero = there is none
	lastFrame time.Time
	status    Status
	known     bool          // status has been received
	ready     chan struct{} // closed when known
	stopped   chan struct{} // closed when both loops have ended
}

type pendingCall struct {
	done      chan struct{} // closed when answer and err are set
	answer    []byte
	err       error
	since     time.Time
	stream    chan []byte // nil = the call does not stream
	unbounded bool        // may take any time
}

// newLink greets the server and takes conn over; close must be called. free
// gets the buffers of calls back once they are sent.
func newLink(conn net.Conn, build string, free *bufferPool) (*link, error) {
	l := &link{
		conn: conn, in: newFrameReader(conn), out: newOutbox(), calls: make(map[uint32]*pendingCall), lastFrame: time.Now(),
		ready: make(chan struct{}), stopped: make(chan struct{}),
	}
	l.out.free = free
	if err := greet(conn, l.in, build); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var loops sync.WaitGroup
	loops.Go(func() { l.end(l.read()) })
	loops.Go(func() {
		if err := l.out.run(conn); err != nil {
			l.end(err)
		} else {
			_ = conn.Close() // which ends the reading loop
		}
	})
	go func() { loops.Wait(); close(l.stopped) }()
	return l, nil
}

// close sends what is queued, for at most a second, and ends the connection.
func (l *link) close() {
	_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second))
	l.out.close()
	<-l.stopped
	l.end(nil)
}

// end makes every call fail from now on.
func (l *link) end(err error) {
	text := "the connection to the store's process ended"
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		text += ": " + err.Error()
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.fail(unavailable(text))
	l.out.close()
	_ = l.conn.Close()
}

// broken ends the connection to a peer that violates the protocol.
func (l *link) broken() error {
	l.end(errProtocol)
	return unavailable(errProtocol.Error())
}

// fail ends all calls, and every later one until recover.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down == nil {
		l.down = err
	}
	for id, p := range l.calls {
		l.finish(id, p, nil, err)
		l.cancel(id)
	}
}

// recover lets calls through again, unless the connection has ended.
func (l *link) recover() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.down = nil
	}
}

// finish needs l.mu.
func (l *link) finish(id uint32, p *pendingCall, answer []byte, err error) {
	p.answer, p.err = answer, err
	delete(l.calls, id)
	close(p.done)
}

// cancel takes a call back, or tells the server that nobody waits for its
// answer.
func (l *link) cancel(id uint32) {
	if !l.out.drop(id) {
		_ = l.out.put(id, kindCancel, nil)
	}
}

// call sends a call and waits for the answer. The first callHeadSize bytes of
// message are filled in here; the message belongs to the link from here on.
func (l *link) call(ctx context.Context, op opcode, message []byte, stream io.Writer) ([]byte, error) {
	left := int64(0)
	if deadline, ok := ctx.Deadline(); ok {
		if left = time.Until(deadline).Microseconds(); left <= 0 {
			return nil, context.DeadlineExceeded
		}
	}
	message[0] = byte(op)
	binary.LittleEndian.PutUint64(message[1:], uint64(left))
	p := &pendingCall{done: make(chan struct{}), since: time.Now(), unbounded: op.unbounded()}
	if stream != nil {
		p.stream = make(chan []byte, streamWindow)
	}
	l.mu.Lock()
	if l.down != nil || len(l.calls) >= maxCalls {
		err := l.down
		l.mu.Unlock()
		if err == nil {
			err = errBusy
		}
		return nil, err
	}
	for l.next++; l.next == 0 || l.calls[l.next] != nil; l.next++ {
	}
	id := l.next
	l.calls[id] = p
	l.mu.Unlock()
	if err := l.out.put(id, kindCall, message); err != nil {
		l.mu.Lock()
		delete(l.calls, id)
		l.mu.Unlock()
		if !errors.Is(err, storage.ErrUnavailable) {
			err = unavailable(err.Error())
		}
		return nil, err
	}
	return l.await(ctx, id, p, stream)
}

func (l *link) await(ctx context.Context, id uint32, p *pendingCall, stream io.Writer) ([]byte, error) {
	for {
		select {
		case piece := <-p.stream:
			if _, err := stream.Write(piece); err != nil {
				l.abandon(id, p)
				return nil, err
			}
			_ = l.out.put(id, kindCredit, nil)
			continue
		case <-p.done:
		case <-ctx.Done():
			if l.abandon(id, p) {
				return nil, ctx.Err()
			}
			<-p.done // it was answered at this moment
		}
		for p.err == nil && len(p.stream) > 0 { // received before the answer
			if _, err := stream.Write(<-p.stream); err != nil {
				return nil, err
			}
		}
		return p.answer, p.err
	}
}

// abandon cancels a call, and reports false if it is finished already.
func (l *link) abandon(id uint32, p *pendingCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls[id] != p {
		return false
	}
	delete(l.calls, id)
	l.cancel(id)
	return true
}

// read handles frames until the connection ends. It never waits for a caller.
func (l *link) read() error {
	for {
		f, err := l.in.next()
		if err != nil {
			return err
		}
		if err := l.handle(f); err != nil {
			return err
		}
	}
}

func (l *link) handle(f frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastFrame = time.Now()
	p := l.calls[f.call]
	switch f.kind {
	case kindPong:
		status, ok := decodeStatus(f.body)
		if !ok || f.more {
			return errProtocol
		}
		l.status, l.pinged = status, time.Time{}
		if !l.known {
			l.known = true
			close(l.ready)
		}
	case kindSize: // so that a large answer is allocated once
		if len(f.body) != 4 || f.more || p != nil && p.answer != nil {
			return errProtocol
		}
		n := binary.LittleEndian.Uint32(f.body)
		if n > maxMessage {
			return errProtocol
		}
		if p != nil {
			p.answer = make([]byte, 0, n)
		}
	case kindAnswer:
		if p == nil {
			return nil // canceled
		}
		if len(p.answer)+len(f.body) > maxMessage {
			return errProtocol
		}
		p.answer = append(p.answer, f.body...)
		if !f.more {
			l.finish(f.call, p, p.answer, nil)
		}
	case kindData:
		if p == nil {
			return nil
		}
		select {
		case p.stream <- append([]byte(nil), f.body...):
		default:
			return errProtocol // without credit, or the call does not stream
		}
	default:
		return errProtocol
	}
	return nil
}

// addPause excludes d from the time that the peer has owed its answers: this
// process was stopped for so long.
func (l *link) addPause(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	later := func(t time.Time) time.Time {
		if t = t.Add(d); t.After(now) {
			return now
		}
		return t
	}
	for _, p := range l.calls {
		p.since = later(p.since)
	}
	if !l.pinged.IsZero() {
		l.pinged = later(l.pinged)
	}
}

// ping asks for the status unless an answer is outstanding. It returns how long
// the peer has owed that answer, and the age of the oldest call that is not
// unbounded.
func (l *link) ping(now time.Time) (silent, oldest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.calls {
		if !p.unbounded {
			oldest = max(oldest, now.Sub(p.since))
		}
	}
	if l.pinged.IsZero() {
		l.pinged = now
		_ = l.out.put(0, kindPing, nil)
		return 0, oldest
	}
	last := l.pinged // other frames are a sign of life too: a pong waits behind them
	if l.lastFrame.After(last) {
		last = l.lastFrame
	}
	return now.Sub(last), oldest
}

// state returns the last status, whether there has been one, and why calls
// fail, nil if they do not.
func (l *link) state() (status Status, known bool, down error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.known, l.down
}
