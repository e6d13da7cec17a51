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
	"github.com/remora-proxy/remora/storage/wire"
)

// Server answers calls from a store. Its fields are set before the first
// connection and not changed afterwards.
type Server struct {
	Store storage.Store
	Local storage.Local
	// Status is called often and must do no I/O.
	Status func() Status
	// Admin answers [Client.Admin]; nil = every name is unknown. It returns
	// when its context ends.
	Admin func(ctx context.Context, name string, args []byte, out io.Writer) ([]byte, error)
	// Build identifies the build of this program. A client of another build is
	// refused.
	Build string
	Log   *slog.Logger

	held atomic.Int64 // bytes of calls, over all connections
}

// ServeConn serves one connection until it or ctx ends, and returns when its
// last call has ended. The error is nil if the peer closed the connection in
// good order.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) error {
	return s.servePeer(ctx, &peer{conn: conn, heard: time.Now()})
}

// servePeer is ServeConn for a connection whose activity others look at.
func (s *Server) servePeer(ctx context.Context, p *peer) error {
	conn := p.conn
	in := newFrameReader(conn)
	if err := welcome(conn, in, s.Build); err != nil {
		return errors.Join(err, conn.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err := newServerConn(s, p).serve(ctx, cancel, in, conn)
	_ = conn.Close()
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// serverConn is the server's end of one connection.
type serverConn struct {
	server *Server
	peer   *peer
	out    *outbox
	writes chan func() // run in order; has room for all calls, so that adding never waits

	mu    sync.Mutex
	calls map[uint32]*serverCall
}

func newServerConn(s *Server, p *peer) *serverConn {
	return &serverConn{server: s, peer: p, out: newOutbox(), calls: make(map[uint32]*serverCall), writes: make(chan func(), maxCalls)}
}

type serverCall struct {
	body     []byte
	held     int64
	complete bool // the last frame has arrived
	refuse   error
	canceled bool
	cancel   context.CancelFunc // nil before the call has begun
	credit   chan struct{}
}

// serve returns when the peer closes the connection or violates the protocol,
// and every call has ended.
func (c *serverConn) serve(ctx context.Context, cancel context.CancelFunc, in *frameReader, to io.Writer) error {
	c.sendStatus()
	var writing, working sync.WaitGroup
	writing.Go(func() {
		if c.out.run(to) != nil {
			cancel()
		}
	})
	working.Go(func() {
		for write := range c.writes {
			write()
		}
	})
	err := c.read(ctx, in, &working)
	cancel()
	close(c.writes)
	working.Wait()
	c.out.close()
	writing.Wait()
	for _, call := range c.calls { // incomplete ones
		c.server.held.Add(-call.held)
	}
	return err
}

func (c *serverConn) sendStatus() { _ = c.out.put(0, kindPong, c.server.Status().encode()) }

func (c *serverConn) read(ctx context.Context, in *frameReader, working *sync.WaitGroup) error {
	for {
		f, err := in.next()
		if err != nil {
			return err
		}
		c.peer.hear(f.kind)
		switch f.kind {
		case kindPing:
			c.sendStatus()
		case kindCancel:
			c.cancelCall(f.call)
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
			if err := c.addFrame(ctx, f, working); err != nil {
				return err
			}
		default:
			return errProtocol
		}
	}
}

// addFrame adds a frame to a call, and begins the call when it is complete.
func (c *serverConn) addFrame(ctx context.Context, f frame, working *sync.WaitGroup) error {
	c.mu.Lock()
	call := c.calls[f.call]
	if call == nil {
		if len(c.calls) >= 2*maxCalls { // a client has at most maxCalls, and as many that it has just canceled
			c.mu.Unlock()
			return errProtocol
		}
		call = &serverCall{}
		c.calls[f.call] = call
	}
	c.mu.Unlock()
	n := int64(len(f.body))
	switch {
	case call.complete || f.call == 0:
		return errProtocol
	case call.refuse != nil:
	case int64(len(call.body))+n > maxMessage+callHeadSize:
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
	if call.refuse == nil && len(call.body) < callHeadSize {
		return errProtocol
	}
	c.begin(ctx, f.call, call, working)
	return nil
}

func (c *serverConn) begin(ctx context.Context, id uint32, call *serverCall, working *sync.WaitGroup) {
	c.peer.work(1)
	c.mu.Lock()
	call.complete = true
	canceled := call.canceled
	c.mu.Unlock()
	if canceled || call.refuse != nil {
		c.finish(id, call, nil, nil, call.refuse, canceled)
		return
	}
	op := opcode(call.body[0])
	if left := binary.LittleEndian.Uint64(call.body[1:]); left > 0 && left < uint64(1)<<53 {
		ctx, call.cancel = context.WithTimeout(ctx, time.Duration(left)*time.Microsecond)
	} else {
		ctx, call.cancel = context.WithCancel(ctx)
	}
	if op == opAdmin {
		c.mu.Lock()
		call.credit = make(chan struct{}, streamWindow)
		for range streamWindow {
			call.credit <- struct{}{}
		}
		c.mu.Unlock()
	}
	args := call.body[callHeadSize:]
	do := func() {
		results, tail, err := c.server.answer(ctx, op, args, &streamWriter{ctx: ctx, conn: c, call: id, credit: call.credit})
		c.finish(id, call, results, tail, err, false)
	}
	if !op.writes() {
		working.Go(do)
		return
	}
	select {
	case c.writes <- do:
	default:
		c.finish(id, call, nil, nil, errBusy, false)
	}
}

// finish sends the answer, unless silent, and releases the call.
func (c *serverConn) finish(id uint32, call *serverCall, results, tail []byte, err error, silent bool) {
	c.peer.work(-1)
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
	if err := c.out.putWithTail(id, kindAnswer, results, tail); errors.Is(err, errBusy) {
		_ = c.out.put(id, kindAnswer, errorAnswer(errBusy)) // if this does not fit either, the client's deadline ends the call
	}
}

func (c *serverConn) cancelCall(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[id]; call != nil {
		call.canceled = true
		if call.cancel != nil {
			call.cancel()
		}
	}
}

// streamWriter sends what is written as frames, as fast as the client consumes
// them.
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

// answer executes a call; the tail follows the results. A panic of the store
// becomes storage.ErrUnavailable.
func (s *Server) answer(ctx context.Context, op opcode, args []byte, stream io.Writer) (results, tail []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("store call panicked", "operation", int(op), "stack", string(debug.Stack()))
			err = unavailable(fmt.Sprintf("panic of type %T", p))
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if op == opAdmin {
		results, err = s.admin(ctx, args, stream)
	} else if known, ok := operations[op]; ok {
		results, tail, err = known.answer(ctx, s, args)
	} else {
		err = fmt.Errorf("store call: unknown operation %d: %w", op, storage.ErrInvalid)
	}
	if err == nil && len(results) > maxMessage {
		return nil, nil, fmt.Errorf("an answer of %d bytes, more than %d: %w", len(results), maxMessage, storage.ErrInvalid)
	}
	return results, tail, err
}

func (s *Server) admin(ctx context.Context, args []byte, stream io.Writer) ([]byte, error) {
	var name string
	c := wire.Reader(args)
	if wire.String(c, &name); c.Failed() {
		return nil, errArguments
	}
	ok := []byte{codeOK}
	if backuper, has := s.Store.(storage.Backuper); has && name == adminBackup {
		return ok, backuper.Backup(ctx, stream)
	}
	if s.Admin == nil {
		return nil, fmt.Errorf("%q is unknown here: %w", name, errors.ErrUnsupported)
	}
	results, err := s.Admin(ctx, name, c.Bytes(), stream)
	return append(ok, results...), err
}
