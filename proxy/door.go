package proxy

import (
	"context"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// door accepts the connections of a Server and serves ordinary requests on them itself; the rest it hands to net/http.
type door struct {
	cfg     ServerConfig
	handler http.Handler
	active  *atomic.Int64 // exchanges under way
	log     *log.Logger
	within  func(context.Context, net.Conn) context.Context // as http.Server.ConnContext
	handed  *handedOver                                     // where net/http takes connections from
	closing atomic.Bool

	mu    sync.Mutex
	conns map[*doorConn]struct{}

	// What look is to look at, not at all connections: most of thousands do nothing.
	looks        sync.Mutex
	fresh, older []underWay // begun since the last look, and before it
	timer        *time.Timer
}

// underWay is a time of c's in which the end of the connection tells that the client has left; see doorConn.turn.
type underWay struct {
	c    *doorConn
	turn uint32
}

// watchEvery is how often the door looks for exchanges that take long. The client of one that was under way twice is watched. Most
// are over before, and cost nothing; a client that leaves is noticed within twice that.
const watchEvery = 20 * time.Millisecond

func newDoor(s *Server) *door {
	return &door{
		cfg: s.cfg, handler: s.handler, active: &s.active, log: s.http.ErrorLog, within: s.http.ConnContext,
		handed: &handedOver{conns: make(chan net.Conn), closed: make(chan struct{})}, conns: map[*doorConn]struct{}{},
	}
}

// accept takes connections until l is closed, and returns its error then. What is not for a door goes to net/http.
func (d *door) accept(l net.Listener, base context.Context) error {
	for pause := time.Duration(0); ; {
		conn, err := l.Accept()
		if err != nil {
			if t, ok := err.(interface{ Temporary() bool }); ok && t.Temporary() { // out of files, as a rule
				d.log.Print("accept")
				pause = min(max(2*pause, 5*time.Millisecond), time.Second)
				time.Sleep(pause)
				continue
			}
			return err
		}
		pause = 0
		tcp, secure := socketOf(conn)
		if tcp == nil {
			d.handed.hand(conn)
			continue
		}
		ctx := base
		if d.within != nil {
			ctx = d.within(base, conn)
		}
		c, err := newDoorConn(d, tcp, secure, ctx)
		if err != nil || !d.enter(c) {
			_ = conn.Close()
			continue
		}
		go c.serve()
	}
}

func (d *door) enter(c *doorConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing.Load() {
		return false
	}
	d.conns[c] = struct{}{}
	return true
}

func (d *door) leave(c *doorConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

// shut ends connections that serve nothing, and keeps others from serving once more. The listener is closed already. Over TLS that may
// wait for the client, some seconds (see secureConn): such connections count as active until then.
func (d *door) shut() {
	d.closing.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		switch {
		case !c.waits.CompareAndSwap(waitsIdle, waitsOver):
		case c.tls == nil:
			_ = c.tcp.Close()
		default:
			d.active.Add(1)
			go func() {
				defer d.active.Add(-1)
				defer time.AfterFunc(mostGoodbye, func() { _ = c.tcp.Close() }).Stop() // TLS's own bound begins behind what it writes
				_ = c.tls.Close()
			}()
		}
	}
}

// mostGoodbye bounds the wait for one client at the door's end.
const mostGoodbye = 5 * time.Second

// cut ends all connections. A nil d has none.
func (d *door) cut() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		_ = c.tcp.Close()
	}
}

// watch sees to it that u is noticed where it takes long.
func (d *door) watch(u underWay) {
	d.looks.Lock()
	defer d.looks.Unlock()
	d.fresh = append(d.fresh, u)
	if len(d.fresh)+len(d.older) > 1 { // the timer runs
		return
	}
	if d.timer == nil {
		d.timer = time.AfterFunc(watchEvery, d.look)
		return
	}
	d.timer.Reset(watchEvery)
}

// look has the clients of those watched that were under way at the last look already, and comes back for the others.
func (d *door) look() {
	d.looks.Lock()
	defer d.looks.Unlock()
	for _, u := range d.older {
		u.c.watchOver(u.turn)
	}
	clear(d.older)
	d.older, d.fresh = d.fresh, d.older[:0]
	if len(d.older) > 0 {
		d.timer.Reset(watchEvery)
	}
}

// complain tells of a panic in a handler as net/http does, which is told not to quote anything.
func (d *door) complain() { d.log.Print("panic") }
