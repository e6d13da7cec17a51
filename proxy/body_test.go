package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// A body comes whole into memory, or goes by whole, whatever length it
// announces and in whatever pieces it comes; and it is charged for what it has,
// not for what it announces.
func TestReadBody(t *testing.T) {
	const limit = 4 << 20
	whole := strings.Repeat("0123456789abcdef", (limit+16)/16)
	for _, n := range []int{0, 1, 1000, firstRoom, firstRoom + 1, 100_000, (firstMore + 1) * firstRoom, (firstMore+1)*firstRoom + 1, 3 << 20, limit, limit + 1} {
		for _, announced := range []bool{true, false} {
			b := &budget{limit: 16 << 20}
			length := int64(-1)
			if announced {
				length = int64(n)
			}
			got, rest, err := readBody(io.NopCloser(iotest.DataErrReader(strings.NewReader(whole[:n]))), length, limit, b)
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if rest != nil {
				passed, err := io.ReadAll(rest)
				if n <= limit || err != nil || string(passed) != whole[:n] {
					t.Errorf("%d bytes, announced %v: streamed %d, %v", n, announced, len(passed), err)
				}
				continue
			}
			if n > limit && announced || !bytes.Equal(got.bytes, []byte(whole[:n])) {
				t.Errorf("%d bytes, announced %v: got %d", n, announced, len(got.bytes))
			}
			if charged := b.used.Load(); charged != int64(cap(got.bytes)) {
				t.Errorf("%d bytes hold %d and are charged as %d", n, cap(got.bytes), charged)
			}
			got.lease.Release()
			if b.used.Load() != 0 {
				t.Errorf("%d bytes: the budget was not given back", n)
			}
		}
	}
}

// Who announces a body and does not send all of it has sent none.
func TestShortBodies(t *testing.T) {
	for _, length := range []int64{2, 1000, firstRoom, (firstMore + 1) * firstRoom, 2 * (firstMore + 1) * firstRoom} {
		b := &budget{limit: 16 << 20}
		_, _, err := readBody(io.NopCloser(strings.NewReader(strings.Repeat("x", int(length-1)))), length, 4<<20, b)
		if !errors.Is(err, io.ErrUnexpectedEOF) || b.used.Load() != 0 {
			t.Errorf("%d of %d bytes: %v, %d charged", length-1, length, err, b.used.Load())
		}
	}
}

// Many who announce a body of the usual size and send nothing leave room for
// others.
func TestIdleBodiesLeaveRoom(t *testing.T) {
	r := newRig(t)
	var idle []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", r.path, 1<<20)
		idle = append(idle, c)
	}
	for deadline := time.Now().Add(10 * time.Second); r.h.bodies.used.Load() != int64(len(idle)*firstRoom); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d idle bodies are charged as %d bytes", len(idle), r.h.bodies.used.Load())
		}
	}
	if got := r.post(chat("user: q")); got.status != StatusEmpty {
		t.Errorf("status %s, with %d of %d bytes charged", got.status, r.h.bodies.used.Load(), r.h.bodies.limit)
	}
}

// Who announces much and sends nothing holds little of what all share.
func TestAnnouncedIsNotHeld(t *testing.T) {
	b := &budget{limit: 64 << 20}
	src, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = readBody(src, 32<<20, 32<<20, b)
	}()
	mustWrite(t, w, "{") // it has begun to read
	if used := b.used.Load(); used > firstRoom {
		t.Errorf("%d bytes are held for one that came", used)
	}
	come := 1
	for range 100 {
		mustWrite(t, w, strings.Repeat("x", 20_000))
		come += 20_000
		if used := b.used.Load(); used > int64((firstMore+1)*come) {
			t.Errorf("%d bytes are held for %d that came", used, come)
		}
	}
	_ = w.CloseWithError(io.ErrUnexpectedEOF)
	wait(t, ended)
	if b.used.Load() != 0 {
		t.Error("the budget was not given back")
	}
}
