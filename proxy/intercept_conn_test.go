package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

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

// Connections of TLS that wait end with the forward listener, and their
// tunnels' places are given back.
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
