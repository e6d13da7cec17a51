//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// doorConnection is the door's end of a connection, which nobody serves, and the client's.
func doorConnection(t *testing.T, on wire) (*doorConn, net.Conn) {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	var s served
	if on.secure {
		a, roots := authority(t)
		decrypt := newInterceptor(a, nil, DefaultServerConfig(), nil)
		go func() { conn, _ := decrypt.conns.Accept(); accepted <- conn }()
		s.tls = &tls.Config{RootCAs: roots, ServerName: interceptedHost}
		s.address = acceptAll(t, func(conn net.Conn) { decrypt.take(context.Background(), conn, interceptedHost, func() {}) })
	} else {
		s.address = acceptAll(t, func(conn net.Conn) { accepted <- conn })
	}
	client := s.dial(t)
	conn := wait(t, accepted)
	t.Cleanup(func() { _ = conn.Close() })
	d := newDoor(NewServer(http.NotFoundHandler(), DefaultServerConfig(), nil))
	tcp, secure := socketOf(conn)
	c, err := newDoorConn(d, tcp, secure, context.Background())
	if err != nil {
		t.Fatal(err)
	}
	d.enter(c)
	return c, client
}

// Whoever has read a body to its end takes its deadline away, in the midst of the end of the exchange, too.
func TestDoorWatchEndsWhateverTheDeadline(t *testing.T) { onEachWire(t, doorWatchEnds) }

func doorWatchEnds(t *testing.T, on wire) {
	c, _ := doorConnection(t, on)
	for range 2000 {
		c.listen()
		c.watchOver(c.turn.Load())
		go c.setReadDeadline(time.Time{})
		ended := make(chan struct{}, 1)
		go func() { c.deafen(); ended <- struct{}{} }()
		wait(t, ended)
	}
}

// A request counts from when it is taken, not from when its handler begins: a door that drains would be done in between.
func TestDoorCountsWhatItTakes(t *testing.T) { onEachWire(t, doorCountsWhatItTakes) }

func doorCountsWhatItTakes(t *testing.T, on wire) {
	c, client := doorConnection(t, on)
	_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	if !c.await(time.Now().Add(patience)) || c.door.active.Load() != 1 {
		t.Fatalf("%d active", c.door.active.Load())
	}
	c.door.shut()
	if c.from = c.to; c.await(time.Now().Add(patience)) || c.door.active.Load() != 1 {
		t.Errorf("%d active once the door is shut", c.door.active.Load())
	}
}

// What the door keeps of exchanges to look at goes with them.
func TestDoorForgetsWhatIsOver(t *testing.T) {
	d := make(chan *door, 1)
	s := wire{}.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case d <- w.(*doorWriter).c.door:
		default:
		}
	}), nil)
	conn := s.dial(t)
	br := bufio.NewReader(conn)
	for range 100 {
		_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if _, err := http.ReadResponse(br, nil); err != nil {
			t.Fatal(err)
		}
	}
	door := wait(t, d)
	for end := time.Now().Add(patience); ; time.Sleep(watchEvery) {
		door.looks.Lock()
		left := len(door.fresh) + len(door.older)
		door.looks.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d are left", left)
		}
	}
}
