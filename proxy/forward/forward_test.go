package forward

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/redact"
)

// The client's TLS ends at the target, over HTTP/1.1 and HTTP/2, with the
// target's own certificate.
func TestForwardTunnelsTLS(t *testing.T) {
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", r.Proto, b)
	}))
	target.EnableHTTP2 = true
	target.StartTLS()
	defer target.Close()
	for _, token := range []redact.Secret{"", "a-token-long-enough"} {
		door, _ := startProxy(t, func(c *Config) { c.Token = token })
		proxy := &url.URL{Scheme: "http", Host: door}
		if token != "" {
			proxy.User = url.UserPassword("anyone", token.Reveal())
		}
		for _, h2 := range []bool{false, true} {
			client := &http.Client{Transport: &http.Transport{
				Proxy: http.ProxyURL(proxy), ForceAttemptHTTP2: h2,
				TLSClientConfig: &tls.Config{RootCAs: target.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
			}}
			resp, err := client.Post(target.URL, "text/plain", strings.NewReader(strings.Repeat("x", 100_000)))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if want := "HTTP/1.1 "; err != nil || len(b) != len(want)+100_000 || h2 != strings.HasPrefix(string(b), "HTTP/2.0") {
				t.Errorf("h2=%v: got %d bytes %.12q, %v", h2, len(b), b, err)
			}
			if got, want := resp.TLS.PeerCertificates[0], target.Certificate(); !got.Equal(want) {
				t.Errorf("got a certificate of %v, want the target's", got.Issuer)
			}
			client.CloseIdleConnections()
		}
	}
}

// A client may send its first bytes with the CONNECT, before it is told that
// there is a tunnel.
func TestForwardKeepsEarlyBytes(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		conn, err := echo.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}()
	door, _ := startProxy(t, nil)
	conn, err := net.Dial("tcp", door)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	mustWrite(t, conn, fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nearly,", echo.Addr()))
	want := "HTTP/1.1 200 Connection established\r\n\r\nearly,"
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != want {
		t.Fatalf("got %q, %v, want %q", buf, err, want)
	}
	mustWrite(t, conn, "late")
	_ = conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "late" {
		t.Errorf("got %q, %v, want late", got, err)
	}
}

func TestForwardRefuses(t *testing.T) {
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy led to a private target") }))
	defer private.Close()
	host := strings.TrimPrefix(private.URL, "http://")
	_, port, _ := net.SplitHostPort(host)
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	const token = "a-token-long-enough"
	tests := []struct {
		name, token, line, auth string
		status                  int
		kind                    string
	}{
		{"absolute form", "", "GET " + private.URL + "/ HTTP/1.1", "", 405, "forward-method"},
		{"origin form", "", "GET / HTTP/1.1", "", 405, "forward-method"},
		{"private address", "", "CONNECT " + host + " HTTP/1.1", "", 403, "forward-forbidden"},
		{"private by name", "", "CONNECT localhost:" + port + " HTTP/1.1", "", 403, "forward-forbidden"},
		{"link-local", "", "CONNECT 169.254.169.254:80 HTTP/1.1", "", 403, "forward-forbidden"},
		{"mapped", "", "CONNECT [::ffff:127.0.0.1]:" + port + " HTTP/1.1", "", 403, "forward-forbidden"},
		{"unspecified", "", "CONNECT 0.0.0.0:" + port + " HTTP/1.1", "", 403, "forward-forbidden"},
		{"no such name", "", "CONNECT no-such-host.invalid:443 HTTP/1.1", "", 502, "upstream-unreachable"},
		{"no token", token, "CONNECT " + host + " HTTP/1.1", "", 407, "forward-auth"},
		{"wrong token", token, "CONNECT " + host + " HTTP/1.1", basic("u:" + token + "x"), 407, "forward-auth"},
		{"token as user", token, "CONNECT " + host + " HTTP/1.1", basic(token + ":"), 407, "forward-auth"},
		{"not base64", token, "CONNECT " + host + " HTTP/1.1", "Basic ?", 407, "forward-auth"},
		{"other scheme", token, "CONNECT " + host + " HTTP/1.1", "Digest " + token, 407, "forward-auth"},
		{"right token, private address", token, "CONNECT " + host + " HTTP/1.1", "Bearer " + token, 403, "forward-forbidden"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			door, _ := startProxy(t, func(c *Config) { c.AllowPrivate, c.Token = false, redact.Secret(tt.token) })
			raw := tt.line + "\r\nHost: x\r\n"
			if tt.auth != "" {
				raw += "Proxy-Authorization: " + tt.auth + "\r\n"
			}
			conn, err := net.Dial("tcp", door)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			mustWrite(t, conn, raw+"\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tt.status || !strings.Contains(string(body), "#"+tt.kind) {
				t.Errorf("got %d %s, %v, want %d %s", resp.StatusCode, body, err, tt.status, tt.kind)
			}
			if got := resp.Header.Get("Proxy-Authenticate") != ""; got != (tt.status == 407) {
				t.Errorf("Proxy-Authenticate: got %v", got)
			}
		})
	}
}

func TestForwardBoundsTunnelsAndClosesThem(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	door, stop := startProxy(t, func(c *Config) { c.MaxTunnels = 1 })
	connect := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", target.Addr())
	first, err := net.Dial("tcp", door)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_ = first.SetDeadline(time.Now().Add(patience))
	mustWrite(t, first, connect)
	want := "HTTP/1.1 200 Connection established\r\n\r\n"
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(first, buf); err != nil || string(buf) != want {
		t.Fatalf("got %q, %v", buf, err)
	}
	if resp, _, err := exchangeRaw(t, door, connect); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("second tunnel: got %v, %v, want a 503", resp, err)
	}
	mustWrite(t, first, "a question")
	if err := stop(); err != nil { // tunnels have no end of their own: their bound ends them
		t.Errorf("Serve: %v", err)
	}
	if _, err := io.ReadAll(first); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("the tunnel is still open: %v", err)
	}
}

func TestForwardListensOnLoopbackAlone(t *testing.T) {
	cfg := DefaultConfig()
	for listen, want := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:0": true, "127.9.9.9:0": true,
		":0": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:0": false, "localhost:0": false, "example.com:0": false,
	} {
		cfg.Listen, cfg.Token = listen, ""
		if got := cfg.Validate() == nil; got != want {
			t.Errorf("%s: got valid %v, want %v", listen, got, want)
		}
		cfg.Token = "a-token-long-enough"
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
	cfg.Listen, cfg.Token = ":0", ""
	f, err := New(cfg, nil, nil, listener.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Listen(); err == nil {
		t.Error("Listen took what Validate refuses")
	}
}

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"1.1.1.1": true, "203.0.114.1": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "ff02::1": false,
		"::ffff:0:127.0.0.1": false, "100::1": false, "5f00::1": false, "4000::1": false, "3fff::1": false, "2001:db8::1": false, "2001:2::1": false, "2001:10::1": false,
		"64:ff9b:1::1": false, "fec0::1": false, "a000::1": false, "::ffff:0:0:1.1.1.1": false, "192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "192.88.99.1": false,
		"192.0.0.9": false, "2620:4f:8000::1": false, "2a00:1450::1": true, "2400:cb00::1": true, "3ffe::1": true, "9.255.255.255": true, "11.0.0.1": true, "172.32.0.1": true,
		"::ffff:10.0.0.1": false, "64:ff9b::7f00:1": false, "::127.0.0.1": false, "2002:7f00:1::": false,
	} {
		if got := public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %v, want %v", addr, got, want)
		}
	}
}

// What the listener refuses is counted by its kind.
func TestRefusalsAreCounted(t *testing.T) {
	p, err := New(DefaultConfig(), nil, nil, listener.DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://host.example/", nil))
	got := map[string]int64{}
	if p.Failures(got); got["forward-method"] != 1 || got["forward-busy"] != 0 {
		t.Errorf("got %v", got)
	}
	p.respond(refusal("host.example", errForbidden))
	if p.Failures(got); got["forward-forbidden"] != 1 {
		t.Errorf("got %v", got)
	}
}
