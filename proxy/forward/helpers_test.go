package forward

import (
	"bufio"
	"context"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
)

const interceptedHost = "api.openai.com"

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http complains there of what these tests do on purpose
	m.Run()
}

// startProxy runs a forward listener until the test ends or stop is called.
func startProxy(t *testing.T, change func(*Config)) (addr string, stop func() error) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Listen, cfg.Drain, cfg.AllowPrivate = "127.0.0.1:0", 20*time.Millisecond, true
	if change != nil {
		change(&cfg)
	}
	f, err := New(cfg, nil, nil, listener.DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx) }()
	t.Cleanup(cancel)
	return f.Addr().String(), func() error { cancel(); return wait(t, done) }
}

// newAuthority returns an authority for interceptedHost, or for hosts.
func newAuthority(t *testing.T, hosts ...string) (*Authority, *x509.CertPool) {
	t.Helper()
	if len(hosts) == 0 {
		hosts = []string{interceptedHost}
	}
	cert, key, err := CreateAuthority(hosts, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := OpenAuthority(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return a, pool
}

// exchangeRaw sends raw to addr and reads the response.
func exchangeRaw(t *testing.T, addr, raw string) (*http.Response, string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	mustWrite(t, conn, raw)
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func mustWrite(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); err != nil || n != len(s) {
		t.Fatalf("write: got %d, %v, want %d", n, err, len(s))
	}
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}
