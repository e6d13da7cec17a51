//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A head is whole where all its records are here, and a body goes on in others.
func TestDoorReadsHeadsInRecords(t *testing.T) {
	s := wire{secure: true}.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		_, own := w.(*doorWriter)
		_, _ = fmt.Fprintf(w, "%v %d %v", own, len(b), err)
	}), nil)
	for _, parts := range [][]string{
		{"POST / HTTP/1.1\r\nHo", "st: h\r\nContent-Length: 2\r\n\r", "\nab"},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n", "a", "b"},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 40000\r\n\r\nab" + strings.Repeat("c", 9000), strings.Repeat("d", 30998)},
	} {
		var choppy *choppyConn
		conn, err := s.dialBeneath(func(c net.Conn) net.Conn { choppy = &choppyConn{Conn: c}; return choppy })
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		choppy.hold()
		for _, p := range parts {
			mustWrite(t, conn, p)
		}
		choppy.calm()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := "true 2 <nil>"
		if len(parts) == 2 {
			want = "true 40000 <nil>"
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != want {
			t.Errorf("%.100q: got %q, want %q", parts, b, want)
		}
	}
}

// tappedConn keeps what its reader was given.
type tappedConn struct {
	net.Conn
	took []byte
}

func (c *tappedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.took = append(c.took, p[:n]...)
	return n, err
}

// alerts says which records of b, of TLS 1.2, are alerts and whether the last one is.
func alerts(b []byte) (n int, last bool) {
	for len(b) >= 5 {
		if last = b[0] == 21; last {
			n++
		}
		b = b[min(len(b), 5+int(b[3])<<8+int(b[4])):]
	}
	return n, last
}

// A client of TLS is told of an end, but not of one that cuts an answer short.
func TestDoorSaysGoodbye(t *testing.T) {
	for path, want := range map[string]bool{"/idle": true, "/close": true, "/abort": false, "/shut": true} {
		s := wire{secure: true}.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			switch path {
			case "/close":
				w.Header().Set("Connection", "close")
			case "/abort":
				_, _ = io.WriteString(w, "some")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}), func(c *ServerConfig) {
			if path == "/idle" {
				c.IdleTimeout = 50 * time.Millisecond
			}
		})
		s.tls.MaxVersion = tls.VersionTLS12 // whose alerts can be told from other records
		var tap *tappedConn
		conn, err := s.dialBeneath(func(c net.Conn) net.Conn { tap = &tappedConn{Conn: c}; return tap })
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		mustWrite(t, conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if path == "/shut" {
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			s.stop()
		}
		_, _ = io.Copy(io.Discard, conn)
		if n, last := alerts(tap.took); last != want || n > 1 {
			t.Errorf("%s: %d alerts, the last record is one: %v, want %v", path, n, last, want)
		}
	}
}

// stuckConn is one whose client takes nothing more.
type stuckConn struct {
	net.Conn
	stuck chan struct{}
}

func (c *stuckConn) Write([]byte) (int, error) {
	close(c.stuck)
	for {
		if err := c.Conn.SetWriteDeadline(time.Time{}); err != nil { // closed
			return 0, err
		}
		time.Sleep(time.Millisecond)
	}
}

// A client that takes no goodbye holds up neither the end of others nor that of the door.
func TestDoorIsNotHeldUpByGoodbyes(t *testing.T) {
	c, _ := doorConnection(t, wire{secure: true})
	conn := &stuckConn{c.tls.under.Conn, make(chan struct{})}
	c.tls.under.Conn = conn
	over := make(chan bool, 1)
	go func() { over <- c.await(time.Now().Add(patience)) }()
	for c.waits.Load() != waitsIdle {
		time.Sleep(time.Millisecond)
	}
	c.door.shut()
	wait(t, conn.stuck)
	if n := c.door.active.Load(); n != 1 {
		t.Errorf("%d are active, want the goodbye", n)
	}
	c.door.cut()
	if wait(t, over) {
		t.Error("it serves on")
	}
	for end := time.Now().Add(patience); c.door.active.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the goodbye is still under way")
		}
	}
}

// An upgrade takes the connection with all that was sent behind its head.
func TestInterceptedUpgrades(t *testing.T) {
	i := newIntercepted(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "echo") {
			_, _ = io.WriteString(w, "plain")
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, rw)
	}, nil)
	conn, br := i.dialRaw(t)
	mustWrite(t, conn, "GET /a HTTP/1.1\r\nHost: "+interceptedHost+"\r\n\r\n")
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != "plain" {
		t.Fatalf("got %q", b)
	}
	mustWrite(t, conn, "GET /b HTTP/1.1\r\nHost: "+interceptedHost+"\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly,")
	if resp, err = http.ReadResponse(br, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	mustWrite(t, conn, "late")
	_ = conn.CloseWrite()
	if got, err := io.ReadAll(br); err != nil || string(got) != "early,late" {
		t.Errorf("got %q, %v", got, err)
	}
}

// dialRaw connects through the door, over TLS.
func (i *intercepted) dialRaw(t *testing.T) (*tls.Conn, *bufio.Reader) {
	t.Helper()
	under, err := net.Dial("tcp", i.door)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = under.Close() })
	_ = under.SetDeadline(time.Now().Add(patience))
	mustWrite(t, under, "CONNECT "+interceptedHost+":443 HTTP/1.1\r\nHost: x\r\n\r\n")
	want := "HTTP/1.1 200 Connection established\r\n\r\n"
	if _, err := io.ReadFull(under, make([]byte, len(want))); err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(under, &tls.Config{RootCAs: i.roots, ServerName: interceptedHost})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// Connections of TLS that wait end with the forward door, and their tunnels' places are given back.
func TestForwardShutsWhatWaits(t *testing.T) {
	i := newIntercepted(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }, nil)
	conn, br := i.dialRaw(t)
	mustWrite(t, conn, "GET /a HTTP/1.1\r\nHost: "+interceptedHost+"\r\n\r\n")
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != "ok" || resp.Close {
		t.Fatalf("got %q, close %v", b, resp.Close)
	}
	if err := i.stop(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(br); err != nil || len(b) > 0 {
		t.Errorf("got %q, %v", b, err)
	}
}
