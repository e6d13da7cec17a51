package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Server answers calls out of a store. Its fields are set before its first connection and not changed afterwards.
type Server struct {
	Store storage.Store
	Local storage.Local
	// Status is asked for often and must do no I/O.
	Status func() Status
	// Admin answers [Client.Admin]; nil = nothing is known. It ends with its context.
	Admin func(ctx context.Context, name string, args []byte, out io.Writer) ([]byte, error)
	// Build names the build of this program. A client of another one is refused.
	Build string
	Log   *slog.Logger

	held atomic.Int64 // bytes of calls, over all connections
}

// ServeConn answers one connection until it ends or ctx does, and returns when its last call has ended. The error is nil
// where the peer hung up in good order.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) error {
	in := newFrames(conn)
	if err := welcome(conn, in, s.Build); err != nil {
		return errors.Join(err, conn.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c := &serverConn{server: s, out: newOutbox(), calls: make(map[uint32]*serverCall), changes: make(chan func(), maxCalls)}
	err := c.serve(ctx, cancel, in, conn)
	_ = conn.Close()
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// serverConn is the server's end of one connection.
type serverConn struct {
	server  *Server
	out     *outbox
	changes chan func() // done in order; as long as there may be calls, so that adding never waits

	mu    sync.Mutex
	calls map[uint32]*serverCall
}

type serverCall struct {
	body   []byte
	held   int64
	begun  bool // all of it has come
	refuse error
	off    bool // called off before all of it has come
	cancel context.CancelFunc
	credit chan struct{}
}

// serve returns when the peer sends no more, or nonsense, and every call has ended.
func (c *serverConn) serve(ctx context.Context, cancel context.CancelFunc, in *frames, to io.Writer) error {
	c.push()
	var writing, working sync.WaitGroup
	writing.Go(func() {
		if c.out.run(to) != nil {
			cancel()
		}
	})
	working.Go(func() {
		for change := range c.changes {
			change()
		}
	})
	err := c.read(ctx, in, &working)
	cancel()
	close(c.changes)
	working.Wait()
	c.out.close()
	writing.Wait()
	c.release()
	return err
}

// push sends the status without being asked.
func (c *serverConn) push() { _ = c.out.put(0, kindPong, c.server.Status().encode()) }

func (c *serverConn) read(ctx context.Context, in *frames, working *sync.WaitGroup) error {
	for {
		f, err := in.next()
		if err != nil {
			return err
		}
		switch f.kind {
		case kindPing:
			c.push()
		case kindCancel:
			c.callOff(f.call)
		case kindCredit:
			c.mu.Lock()
			call := c.calls[f.call]
			c.mu.Unlock()
			if call != nil && call.credit != nil {
				select {
				case call.credit <- struct{}{}:
				default:
					return errProtocol
				}
			}
		case kindCall:
			if err := c.takeCall(ctx, f, working); err != nil {
				return err
			}
		default:
			return errProtocol
		}
	}
}

// takeCall adds a piece to a call, and starts it when it is whole.
func (c *serverConn) takeCall(ctx context.Context, f frame, working *sync.WaitGroup) error {
	c.mu.Lock()
	call := c.calls[f.call]
	if call == nil {
		if len(c.calls) >= 2*maxCalls { // a client has at most maxCalls, and as many that it has just called off
			c.mu.Unlock()
			return errProtocol
		}
		call = &serverCall{}
		c.calls[f.call] = call
	}
	c.mu.Unlock()
	n := int64(len(f.body))
	switch {
	case call.begun || f.call == 0:
		return errProtocol
	case call.refuse != nil:
	case int64(len(call.body))+n > maxMessage+callHead:
		return errProtocol
	case c.server.held.Add(n) > maxHeld:
		c.server.held.Add(-n)
		call.refuse, call.body = errBusy, nil
	default:
		call.held += n
		call.body = append(call.body, f.body...)
	}
	if f.more {
		return nil
	}
	if call.refuse == nil && len(call.body) < callHead {
		return errProtocol
	}
	return c.begin(ctx, f.call, call, working)
}

func (c *serverConn) begin(ctx context.Context, id uint32, call *serverCall, working *sync.WaitGroup) error {
	c.mu.Lock()
	call.begun = true
	off := call.off
	c.mu.Unlock()
	if off || call.refuse != nil {
		c.finish(id, call, nil, nil, call.refuse, off)
		return nil
	}
	op := operation(call.body[0])
	if left := binary.LittleEndian.Uint64(call.body[1:]); left > 0 && left < uint64(1)<<53 {
		ctx, call.cancel = context.WithTimeout(ctx, time.Duration(left)*time.Microsecond)
	} else {
		ctx, call.cancel = context.WithCancel(ctx)
	}
	if op == opAdmin {
		c.mu.Lock()
		call.credit = make(chan struct{}, window)
		for range window {
			call.credit <- struct{}{}
		}
		c.mu.Unlock()
	}
	args := newDecoder(call.body[callHead:])
	do := func() {
		results, tail, err := c.server.answer(ctx, op, args, &streamWriter{ctx: ctx, conn: c, call: id, credit: call.credit})
		c.finish(id, call, results, tail, err, false)
	}
	if !op.changes() {
		working.Go(do)
		return nil
	}
	select {
	case c.changes <- do:
		return nil
	default:
		call.cancel()
		c.finish(id, call, nil, nil, errBusy, false)
		return nil
	}
}

// finish sends the answer and lets go of the call.
func (c *serverConn) finish(id uint32, call *serverCall, results, tail []byte, err error, silent bool) {
	if call.cancel != nil {
		call.cancel()
	}
	if err != nil {
		results, tail = errorAnswer(err), nil
	}
	c.mu.Lock()
	delete(c.calls, id)
	c.mu.Unlock()
	c.server.held.Add(-call.held)
	call.body = nil
	if silent {
		return
	}
	if err := c.out.putBoth(id, kindAnswer, results, tail); errors.Is(err, errBusy) {
		_ = c.out.put(id, kindAnswer, errorAnswer(errBusy)) // a few bytes; if even they don't fit, the client's deadline tells
	}
}

func errorAnswer(err error) []byte {
	text := err.Error()
	return appendString([]byte{codeOf(err)}, text[:min(len(text), maxText)])
}

func (c *serverConn) callOff(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[id]; call != nil {
		call.off = true
		if call.cancel != nil {
			call.cancel()
		}
	}
}

// release gives back what half a call holds when the connection ends.
func (c *serverConn) release() {
	for _, call := range c.calls {
		c.server.held.Add(-call.held)
	}
}

// streamWriter sends what is written as frames, as fast as the client takes them.
type streamWriter struct {
	ctx    context.Context
	conn   *serverConn
	call   uint32
	credit chan struct{}
}

func (w *streamWriter) Write(p []byte) (n int, err error) {
	for n < len(p) {
		select {
		case <-w.credit:
		case <-w.ctx.Done():
			return n, w.ctx.Err()
		}
		piece := p[n:min(len(p), n+maxFrame)]
		if err := w.conn.out.put(w.call, kindData, append([]byte(nil), piece...)); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// answer does what a call asks for; the tail follows the results. A panic of the store is its failure, not the process'.
func (s *Server) answer(ctx context.Context, op operation, args *decoder, stream io.Writer) (results, tail []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("store call panicked", "operation", int(op), "stack", string(debug.Stack()))
			err = unavailable(fmt.Sprintf("panic of type %T", p))
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if op == opRecord {
		return s.record(ctx, args)
	}
	results, err = s.do(ctx, op, args, stream)
	if err == nil && len(results) > maxMessage {
		return nil, nil, fmt.Errorf("an answer of %d bytes is more than %d: %w", len(results), maxMessage, storage.ErrInvalid)
	}
	return results, nil, err
}
