package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/iotest"
)

func TestPieceReader(t *testing.T) {
	for _, pieces := range [][][]byte{
		{}, {{}}, {[]byte("one")}, {[]byte("a"), {}, []byte("bc"), []byte("def"), {}},
	} {
		want := bytes.Join(pieces, nil)
		body := memoryBody(nil, pieces...)
		if got := body.length; got != int64(len(want)) {
			t.Errorf("length: got %d, want %d", got, len(want))
		}
		if err := iotest.TestReader(struct{ io.Reader }{body.open()}, want); err != nil {
			t.Error(err)
		}
		for range 2 { // it can be sent again
			var got bytes.Buffer
			if _, err := body.open().WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("WriteTo: got %q, %v, want %q", got.Bytes(), err, want)
			}
		}
	}
}

func TestLease(t *testing.T) {
	freed := 0
	l := newLease(func() { freed++ })
	body := memoryBody(l, []byte("abc"), []byte("def"))
	first, second := body.open(), body.open()
	l.release()
	first.Close()
	first.Close()
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, errBodyClosed) {
		t.Errorf("read after close: got %v, want %v", err, errBodyClosed)
	}
	if freed != 0 {
		t.Fatal("freed while a reader is open")
	}
	second.Close()
	if freed != 1 {
		t.Errorf("freed %d times, want once", freed)
	}
	var none *lease
	none.take()
	none.release()
}

// A transport may close a body while another goroutine reads it. The bytes must not go back to their pool before that
// read is over: they would be another request's by then.
func TestLeaseOutlivesReadInProgress(t *testing.T) {
	freed := make(chan struct{})
	l := newLease(func() { close(freed) })
	r := memoryBody(l, []byte("abc")).open()
	l.release()
	closing := writerFunc(func(p []byte) (int, error) {
		r.Close()
		select {
		case <-freed:
			t.Error("freed during a read")
		default:
		}
		return len(p), nil
	})
	if _, err := r.WriteTo(closing); err != nil {
		t.Fatal(err)
	}
	select {
	case <-freed:
	default:
		t.Error("not freed after the read")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// upstreamConns returns a connection as a transport has it, and its far end.
func upstreamConns(t *testing.T) (*upstreamConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return &upstreamConn{TCPConn: near.(*net.TCPConn)}, far
}

func TestUpstreamConn(t *testing.T) {
	pieces := [][]byte{[]byte("head of body,"), bytes.Repeat([]byte("x"), 100_000), []byte(",tail")}
	bodyText := string(bytes.Join(pieces, nil))
	tests := []struct {
		name string
		send func(t *testing.T, c *upstreamConn) int64
		want string
		n    int64
	}{
		{"held head and memory", func(t *testing.T, c *upstreamConn) int64 {
			holdHead(httptrace.GotConnInfo{Conn: c})
			mustWrite(t, c, "HEAD")
			body := memoryBody(nil, pieces...)
			n, err := c.ReadFrom(&io.LimitedReader{R: body.open(), N: body.length})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}, "HEAD" + bodyText, int64(len(bodyText))},
		{"held head and chunks", func(t *testing.T, c *upstreamConn) int64 {
			holdHead(httptrace.GotConnInfo{Conn: c})
			mustWrite(t, c, "HEAD")
			mustWrite(t, c, "3\r\nabc\r\n")
			mustWrite(t, c, "0\r\n\r\n")
			return 0
		}, "HEAD3\r\nabc\r\n0\r\n\r\n", 0},
		{"held head and a stream", func(t *testing.T, c *upstreamConn) int64 {
			holdHead(httptrace.GotConnInfo{Conn: c})
			mustWrite(t, c, "HEAD")
			n, err := c.ReadFrom(strings.NewReader(bodyText))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}, "HEAD" + bodyText, int64(len(bodyText))},
		{"head larger than what is held", func(t *testing.T, c *upstreamConn) int64 {
			holdHead(httptrace.GotConnInfo{Conn: c})
			mustWrite(t, c, strings.Repeat("H", maxHeldHead+1))
			return 0
		}, strings.Repeat("H", maxHeldHead+1), 0},
		{"nothing held", func(t *testing.T, c *upstreamConn) int64 {
			mustWrite(t, c, "GET")
			return 0
		}, "GET", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, far := upstreamConns(t)
			got := make(chan string, 1)
			go func() {
				b, _ := io.ReadAll(far)
				got <- string(b)
			}()
			if n := tt.send(t, c); n != tt.n {
				t.Errorf("body: got %d bytes, want %d", n, tt.n)
			}
			c.Close()
			if g := <-got; g != tt.want {
				t.Errorf("got %d bytes, want %d", len(g), len(tt.want))
			}
		})
	}
}

// The transport sends a request again on another connection only where it counts that nothing was sent. A held head
// must not spoil the count: a pooled connection that the upstream has just closed would fail the client's request.
func TestUpstreamConnTakesBackTheHead(t *testing.T) {
	c, _ := upstreamConns(t)
	holdHead(httptrace.GotConnInfo{Conn: c})
	mustWrite(t, c, "HEAD")
	c.TCPConn.Close()
	body := memoryBody(nil, []byte("body"))
	n, err := c.ReadFrom(&io.LimitedReader{R: body.open(), N: body.length})
	if err == nil || n != -4 {
		t.Errorf("got %d, %v, want -4 and an error", n, err)
	}
}

func mustWrite(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); err != nil || n != len(s) {
		t.Fatalf("write: got %d, %v, want %d", n, err, len(s))
	}
}
