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

// callHead is what stands before the arguments of a call: the operation, and in 8 bytes the microseconds that are left, 0 = any.
const callHead = 9

// link is the client's end of one connection.
type link struct {
	conn net.Conn
	in   *frames
	out  *outbox

	mu      sync.Mutex
	calls   map[uint32]*pending
	next    uint32
	down    error     // why calls end at once; nil = they go through
	closed  bool      // for good
	pinged  time.Time // when the ping went out that is not answered yet; zero = none is under way
	heard   time.Time // of the last frame
	status  Status
	onward  chan struct{} // closed when the first status has come
	stopped chan struct{} // closed when both loops have ended
}

// pending is a call that is under way.
type pending struct {
	done    chan struct{}
	answer  []byte
	err     error
	since   time.Time
	stream  chan []byte // nil = none
	endless bool        // may take as long as it takes
}

// newLink takes a connection over; close must be called. free gets the arguments of calls back once they are sent.
func newLink(conn net.Conn, build string, free *buffers) (*link, error) {
	l := &link{
		conn: conn, in: newFrames(conn), out: newOutbox(), calls: make(map[uint32]*pending), heard: time.Now(),
		onward: make(chan struct{}), stopped: make(chan struct{}),
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
			_ = conn.Close() // which ends the other one
		}
	})
	go func() { loops.Wait(); close(l.stopped) }()
	return l, nil
}

// close sends what waits, at most for a moment, and ends the connection.
func (l *link) close() {
	_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second))
	l.out.close()
	<-l.stopped
	l.end(nil)
}

// end lets every call fail, for good.
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

// broken ends the connection to a peer that sends nonsense.
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
		l.callOff(id)
	}
}

// recover lets calls through again.
func (l *link) recover() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.down = nil
	}
}

// finish needs l.mu.
func (l *link) finish(id uint32, p *pending, answer []byte, err error) {
	p.answer, p.err = answer, err
	delete(l.calls, id)
	close(p.done)
}

// callOff tells the server that nobody waits for an answer any more.
func (l *link) callOff(id uint32) {
	if !l.out.drop(id) {
		_ = l.out.put(id, kindCancel, nil)
	}
}

// call sends a call, whose arguments begin after callHead bytes that are filled in here, and waits for the answer. The
// message is the link's from here on.
func (l *link) call(ctx context.Context, op operation, message []byte, stream io.Writer) ([]byte, error) {
	left := int64(0)
	if deadline, ok := ctx.Deadline(); ok {
		if left = time.Until(deadline).Microseconds(); left <= 0 {
			return nil, context.DeadlineExceeded
		}
	}
	message[0] = byte(op)
	binary.LittleEndian.PutUint64(message[1:], uint64(left))
	p := &pending{done: make(chan struct{}), since: time.Now(), endless: op.endless()}
	if stream != nil {
		p.stream = make(chan []byte, window)
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

func (l *link) await(ctx context.Context, id uint32, p *pending, stream io.Writer) ([]byte, error) {
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
			<-p.done // answered in this moment
		}
		for p.err == nil && len(p.stream) > 0 { // came before the answer
			if _, err := stream.Write(<-p.stream); err != nil {
				return nil, err
			}
		}
		return p.answer, p.err
	}
}

// abandon takes a call out; false means that it is finished.
func (l *link) abandon(id uint32, p *pending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls[id] != p {
		return false
	}
	delete(l.calls, id)
	l.callOff(id)
	return true
}

// read takes frames in until the connection ends. It never waits for a caller.
func (l *link) read() error {
	for {
		f, err := l.in.next()
		if err != nil {
			return err
		}
		if err := l.take(f); err != nil {
			return err
		}
	}
}

func (l *link) take(f frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now()
	p := l.calls[f.call]
	switch f.kind {
	case kindPong:
		status, ok := decodeStatus(f.body)
		if !ok || f.more {
			return errProtocol
		}
		first := l.status.PID == 0
		l.status, l.pinged = status, time.Time{}
		l.status.PID = 1 // known; whose it is the supervisor says
		if first {
			close(l.onward)
		}
	case kindSize: // or the answer would be copied each time that it has outgrown its space
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
			return nil // called off
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
			return errProtocol // more than it had credit for, or no stream at all
		}
	default:
		return errProtocol
	}
	return nil
}

// stoodStill leaves some time out of what the peer has owed its answers for.
func (l *link) stoodStill(d time.Duration) {
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

// ping asks for the status, unless it was asked for already, and returns how long the peer has owed an answer and the age
// of the oldest call.
func (l *link) ping(now time.Time) (silent, oldest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.calls {
		if !p.endless {
			oldest = max(oldest, now.Sub(p.since))
		}
	}
	if !l.pinged.IsZero() {
		// Frames that come are a sign of life, too: a ping waits behind them.
		last := l.pinged
		if l.heard.After(last) {
			last = l.heard
		}
		return now.Sub(last), oldest
	}
	l.pinged = now
	_ = l.out.put(0, kindPing, nil)
	return 0, oldest
}

func (l *link) state() (Status, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.down
}
