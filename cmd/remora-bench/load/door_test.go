package load

import (
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDoorHost(t *testing.T) {
	if got := (route{addr: "127.0.0.1:1"}).host(); got != "127.0.0.1:1" {
		t.Errorf("host = %s, want the address", got)
	}
	if got := (route{addr: "127.0.0.1:1", connect: "api.example:443"}).host(); got != "api.example" {
		t.Errorf("host = %s, want the one of the CONNECT", got)
	}
}

// A proxy that refuses the tunnel, or says more than yes, is an error and no
// connection.
func TestTunnelRefused(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n": "CONNECT api.example:443: status 403",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello":   "bytes after",
		"nonsense\r\n\r\n": "status 0",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if h, err := newWireReader(c, wireBuffer).head(); err != nil || string(h.start) != "CONNECT api.example:443 HTTP/1.1" {
				t.Errorf("asked with %q, %v", h.start, err)
			}
			_, _ = c.Write([]byte(answer))
		})
		d := route{addr: l.Addr().String(), connect: "api.example:443", tls: &tls.Config{ServerName: "api.example"}}
		c, err := d.dial(t.Context(), time.Now().Add(time.Minute))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", answer, err, want)
		}
		if err == nil {
			_ = c.Close()
		}
		_ = l.Close()
		wg.Wait()
	}
}

// The certificate of a run is trusted by whoever is given its file, for the
// loopback address alone.
func TestCertificate(t *testing.T) {
	c, err := makeCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server, err := serverTLS(c.certFile, c.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).HandshakeContext(t.Context())
			_ = c.Close()
		}
	})
	defer wg.Wait()
	defer l.Close()
	for name, want := range map[string]bool{"127.0.0.1": true, "api.example": false} {
		client, err := clientTLS(c.certFile, name)
		if err != nil {
			t.Fatal(err)
		}
		d := route{addr: l.Addr().String(), tls: client}
		conn, err := d.dial(t.Context(), time.Now().Add(time.Minute))
		if (err == nil) != want {
			t.Errorf("as %s: %v", name, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if _, err := clientTLS(c.keyFile, ""); err == nil {
		t.Error("a key is taken for a certificate authority")
	}
	if _, err := serverTLS(c.certFile, ""); err == nil {
		t.Error("a certificate is served without its key")
	}
}
