package listener

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
)

// TestIdleTunnelsEndWithTheListener: those in which something may be awaited go
// on.
func TestIdleTunnelsEndWithTheListener(t *testing.T) {
	frame := func(f ws.Frame) []byte {
		var b bytes.Buffer
		if err := ws.WriteFrame(&b, f); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	question := frame(ws.MaskFrame(ws.NewTextFrame([]byte("What is the weather like?"))))
	answer := frame(ws.NewTextFrame(bytes.Repeat([]byte("Fine. "), 20_000)))
	ping, pong := frame(ws.NewPingFrame(nil)), frame(ws.MaskFrame(ws.NewPongFrame([]byte("x"))))
	const long = time.Hour
	for _, c := range []struct {
		name     string
		client   [][]byte // what each side says before the door closes, client first
		upstream [][]byte
		silent   time.Duration // before the door closes
		later    bool          // the upstream says something 50 s after
		drain    time.Duration // of the door, long if 0
		stays    time.Duration // for so long after the door has closed, at least
		farewell bool
	}{
		{name: "nothing said", silent: long, farewell: true},
		{name: "answered", client: [][]byte{question}, upstream: [][]byte{answer}, silent: long, farewell: true},
		{name: "answered just now", client: [][]byte{question}, upstream: [][]byte{answer}, stays: tunnelIdle, farewell: true},
		{name: "a pause in the midst of an answer", client: [][]byte{question}, upstream: [][]byte{answer}, silent: 8 * time.Second, stays: 5 * time.Second, farewell: true},
		{name: "awaited", client: [][]byte{question}, silent: 5 * time.Second, later: true, stays: 50*time.Second + tunnelIdle, farewell: true},
		{name: "awaited in vain", client: [][]byte{question}, silent: 5 * time.Second, stays: answerWait - 5*time.Second, farewell: true},
		{name: "a sign of life", client: [][]byte{question}, silent: long, farewell: true},
		{name: "awaited at the end", client: [][]byte{question}, drain: 25 * time.Second, stays: 25*time.Second - lastCall, farewell: true},
		{name: "awaited at the end of a short drain", client: [][]byte{question}, drain: lastCall, stays: lastCall / 2, farewell: true},
		{name: "kept alive", client: [][]byte{question}, upstream: [][]byte{answer, ping}, silent: long, farewell: true},
		{name: "awaited and kept alive", client: [][]byte{question, pong}, upstream: [][]byte{ping}, silent: 5 * time.Second, later: true, stays: 50*time.Second + tunnelIdle, farewell: true},
		{name: "in the midst of a frame", upstream: [][]byte{answer[:1000]}, silent: long},
		{name: "in the midst of a head", upstream: [][]byte{answer[:3]}, silent: long},
	} {
		for _, websocket := range []bool{true, false} {
			if !websocket && c.name == "awaited and kept alive" {
				continue // nobody knows there what is said
			}
			if c.drain == 0 {
				c.drain = 2 * long
			}
			t.Run(fmt.Sprint(c.name, " websocket ", websocket), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client, near := net.Pipe()
					far, upstream := net.Pipe()
					ctx, cancel := context.WithTimeout(t.Context(), 2*long) // or one that never falls would run for ever
					defer cancel()
					begun, carry := make(chan struct{}), Tunnel
					if websocket {
						carry = socketTunnel
					}
					done := make(chan time.Time, 1)
					go func() {
						carry(context.WithValue(ctx, closingKey{}, &closing{begun: begun, drain: c.drain}), near, far)
						done <- time.Now()
					}()
					heard, asked := make(chan []byte, 1), make(chan []byte, 1)
					read := func(from io.Reader, to chan []byte) {
						b, _ := io.ReadAll(from)
						to <- b
					}
					go read(client, heard)
					go read(upstream, asked)
					var want, sent []byte
					for _, b := range c.client {
						write(t, client, b)
						sent = append(sent, b...)
					}
					synctest.Wait() // what the upstream says is an answer
					for _, b := range c.upstream {
						write(t, upstream, b)
						want = append(want, b...)
					}
					synctest.Wait()
					time.Sleep(c.silent)
					close(begun)
					began := time.Now()
					if c.later {
						time.Sleep(50 * time.Second)
						select {
						case <-done:
							t.Fatal("it ended while an answer was awaited")
						default:
						}
						write(t, upstream, answer)
						want = append(want, answer...)
					}
					if took := (<-done).Sub(began); took < c.stays || took > c.stays+3*time.Second {
						t.Errorf("it ended after %v, want %v", took, c.stays)
					}
					if websocket && c.farewell {
						want = append(want, frame(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusGoingAway, "")))...)
					}
					if got := <-heard; !bytes.Equal(got, want) {
						t.Errorf("the client got %d bytes, want %d", len(got), len(want))
					}
					if got := <-asked; !bytes.Equal(got, sent) {
						t.Errorf("the upstream got %d bytes, want %d", len(got), len(sent))
					}
				})
			})
		}
	}
}

// TestFramesInPieces: frames are followed wherever they are cut.
func TestFramesInPieces(t *testing.T) {
	var all bytes.Buffer
	ends := map[int]bool{0: true}
	for _, n := range []int{0, 1, 125, 126, 300, 65_536} {
		for _, f := range []ws.Frame{ws.NewTextFrame(make([]byte, n)), ws.MaskFrame(ws.NewBinaryFrame(make([]byte, n)))} {
			if err := ws.WriteFrame(&all, f); err != nil {
				t.Fatal(err)
			}
			ends[all.Len()] = true
		}
	}
	for _, size := range []int{1, 2, 7, 100, 1 << 20} {
		f := &frames{}
		for at, b := 0, all.Bytes(); len(b) > 0; {
			n := min(size, len(b))
			f.hasData(b[:n])
			if at, b = at+n, b[n:]; f.between() != ends[at] {
				t.Fatalf("pieces of %d: at %d between is %v", size, at, f.between())
			}
		}
	}
	for _, f := range []ws.Frame{ws.NewPingFrame([]byte("x")), ws.MaskFrame(ws.NewPongFrame(nil)), ws.NewCloseFrame(nil)} {
		var b bytes.Buffer
		if err := ws.WriteFrame(&b, f); err != nil {
			t.Fatal(err)
		}
		if (&frames{}).hasData(b.Bytes()) {
			t.Errorf("%v says something", f.Header.OpCode)
		}
	}
}

func write(t *testing.T, to io.Writer, b []byte) {
	t.Helper()
	if _, err := to.Write(b); err != nil {
		t.Fatal(err)
	}
}

func TestTunnelEndsWithItsContext(t *testing.T) {
	a, farA := net.Pipe()
	b, farB := net.Pipe()
	defer farA.Close()
	defer farB.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); Tunnel(ctx, a, b) }()
	write(t, farA, []byte("x"))
	if _, err := io.ReadFull(farB, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if _, err := farB.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("far end: got %v, want EOF", err)
	}
}
