//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// tcpPair is a connection, both ends of it.
func tcpPair(t *testing.T) (one, other *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	return conn.(*net.TCPConn), accepted.(*net.TCPConn)
}

// randomPieces are n pieces, some of them empty and some more than one call takes, and what they are together.
func randomPieces(r *rand.Rand, n int) (pieces net.Buffers, whole []byte) {
	for range n {
		p := make([]byte, []int{0, 1, 300, 70_000, mostAtOnce + 1}[r.IntN(5)])
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		pieces, whole = append(pieces, p), append(whole, p...)
	}
	return pieces, whole
}

// What the socket takes at once and what is left are all of the pieces, in order, whoever reads and however slowly. Then the other
// side reads it as a body, which must be what was sent.
func TestPiecesAndBodies(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 12 {
		sender, receiver := tcpPair(t)
		pieces, whole := randomPieces(r, n)
		raw, err := sender.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		q := newQuickWriter(raw)
		go func() {
			for rest := q.take(pieces); len(rest) > 0; rest = q.take(rest) {
				time.Sleep(time.Millisecond) // until some has been read
			}
		}()
		c, err := newDoorConn(&door{}, receiver, nil, context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b := &doorBody{c: c, left: int64(len(whole)) + 1} // so that nothing is done at its end
		got := make([]byte, len(whole))
		for at := 0; at < len(got); {
			_ = receiver.SetReadDeadline(time.Now().Add(20 * time.Second))
			m, err := b.Read(got[at:min(len(got), at+1+r.IntN(2*mostAtOnce))])
			if err != nil {
				t.Fatalf("%d pieces: %v after %d bytes of %d", n, err, at+m, len(got))
			}
			if at += m; r.IntN(4) == 0 {
				time.Sleep(2 * time.Millisecond)
			}
		}
		if !bytes.Equal(got, whole) {
			t.Errorf("%d pieces of %d bytes arrive changed", n, len(whole))
		}
		c.cancel()
	}
}

// Nothing is taken by a connection that is closed, and what fails is left for the write that tells of it.
func TestNoPiecesForTheClosed(t *testing.T) {
	sender, receiver := tcpPair(t)
	raw, err := sender.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = receiver.SetLinger(0)
	_ = receiver.Close()
	if _, err := sender.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Fatalf("got %v, want a reset", err)
	}
	q := newQuickWriter(raw)
	pieces := net.Buffers{[]byte("a"), []byte("b")}
	for range 2 {
		if rest := q.take(pieces); len(rest) != 2 {
			t.Fatalf("%d pieces are left of 2", len(rest))
		}
		if _, err := sender.Write([]byte("a")); err == nil {
			t.Error("the write that follows tells of nothing")
		}
		_ = sender.Close()
	}
}

// A read of a body ends with its deadline, and with its connection.
func TestBodyReadsEnd(t *testing.T) {
	_, receiver := tcpPair(t)
	c, err := newDoorConn(&door{}, receiver, nil, context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var p [1]byte
	c.setReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := c.read(p[:]); n != 0 || !err.(net.Error).Timeout() {
		t.Errorf("got %d, %v, want a timeout", n, err)
	}
	c.setReadDeadline(time.Time{})
	time.AfterFunc(10*time.Millisecond, func() { _ = receiver.Close() })
	if n, err := c.read(p[:]); n != 0 || err == nil {
		t.Errorf("got %d, %v, want an error", n, err)
	}
}
