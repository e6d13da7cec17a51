package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"encoding/pem"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/problem"
)

// What fails on the way to an upstream is told by a problem that names its
// host, and neither key nor query.
func TestProblems(t *testing.T) {
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	_, securePort, _ := net.SplitHostPort(secure.Listener.Addr().String())
	hangup := newCanned(t, map[string]string{"/close": "", "/alert/close": "\x15\x03\x01\x00\x02\x02\x46", "/smtp/close": "220 mail.example ESMTP\r\n\r\n", "/101/close": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"})
	plain := hopListen(t, http.NotFoundHandler())

	tests := []struct {
		name, url, path string
		status          int
		kind            string
	}{
		{"refused", "http://" + refused.Addr().String(), "/", 502, "upstream-unreachable"},
		{"no such name", "http://no-such-host.invalid", "/", 502, "upstream-unreachable"},
		{"unknown authority", secure.URL, "/", 502, "upstream-tls"},
		{"TLS to a plain server", strings.Replace(plain, "http:", "https:", 1), "/", 502, "upstream-tls"},
		{"plain HTTP to a TLS server", "http://127.0.0.1:" + securePort, "/", 400, ""},
		{"hangs up", "http://" + hangup.addr, "/close", 502, "upstream-failed"},
		{"switches unasked", "http://" + hangup.addr, "/101/close", 502, "upstream-protocol"},
		{"answers with a TLS alert", "http://" + hangup.addr, "/alert/close", 502, "upstream-protocol"},
		{"is a mail server", "http://" + hangup.addr, "/smtp/close", 502, "upstream-protocol"},
		{"is a mail server to http.Transport", "http://" + hangup.addr, "/smtp/close", 502, "upstream-protocol"},
		{"silent", "http://" + silent.Addr().String(), "/", 504, "upstream-timeout"},
		{"silent at the handshake", "https://" + silent.Addr().String(), "/", 504, "upstream-timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := httpclient.DefaultTransportConfig()
			cfg.ResponseHeaderTimeout, cfg.TLSTimeout = 50*time.Millisecond, 50*time.Millisecond
			cfg.ProxyFromEnvironment = strings.HasSuffix(tt.name, "http.Transport") // of loopback addresses there is no proxy
			if tt.status != 504 {
				cfg.ResponseHeaderTimeout, cfg.TLSTimeout = patience, patience
			}
			p, err := openPlane([]httpclient.UpstreamConfig{{Name: "up", URL: tt.url, Paths: []string{"/"}}}, cfg, DefaultStreamConfig())
			if err != nil {
				t.Fatal(err)
			}
			defer p.router.CloseIdle()
			door := hopServe(t, hop{p: p})
			resp, body, err := exchangeRaw(t, door,
				"POST "+tt.path+"?api_key=sk-query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-header\r\nContent-Length: 2\r\n\r\n{}")
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tt.status {
				t.Fatalf("got %d %s, want %d", resp.StatusCode, body, tt.status)
			}
			if tt.kind == "" {
				return // the upstream's own words
			}
			if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("Content-Type: got %q", got)
			}
			var got problem.Problem
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if got.Status != tt.status || got.Kind() != tt.kind || got.Title == "" {
				t.Errorf("got %+v, want %d %s", got, tt.status, tt.kind)
			}
			if host := p.choose(&http.Request{URL: &url.URL{Path: tt.path}}).URL.Host; !strings.Contains(got.Detail, host) {
				t.Errorf("%q does not name %s", got.Detail, host)
			}
			if strings.Contains(body, "sk-") {
				t.Errorf("%q holds a key", body)
			}
		})
	}
}

func TestCertificateProblems(t *testing.T) {
	up := &httpclient.Upstream{URL: &url.URL{Scheme: "https", Host: "host:8443"}}
	for _, err := range []error{
		x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"},
		x509.CertificateInvalidError{Reason: x509.Expired},
		&tls.CertificateVerificationError{Err: errors.New("x")},
		tls.AlertError(40),
		tls.RecordHeaderError{Msg: "x"},
	} {
		if p := explain(up, err); p.Status != 502 || !strings.HasSuffix(p.Type, "#upstream-tls") || !strings.Contains(p.Detail, "host:8443") {
			t.Errorf("%T: got %+v", err, p)
		}
	}
}

func TestCAFile(t *testing.T) {
	up := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer up.Close()
	dir := t.TempDir()
	good, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "empty.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw})
	if err := errors.Join(os.WriteFile(good, block, 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	open := func(file string) (*plane, error) {
		return openPlane([]httpclient.UpstreamConfig{{Name: "up", URL: up.URL, Paths: []string{"/"}, CAFile: file}}, httpclient.DefaultTransportConfig(), DefaultStreamConfig())
	}
	p, err := open(good)
	if err != nil {
		t.Fatal(err)
	}
	defer p.router.CloseIdle()
	if resp, body, err := exchangeRaw(t, hopServe(t, hop{p: p}), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil || body != "ok" {
		t.Errorf("got %v %q, %v", resp, body, err)
	}
	for _, file := range []string{empty, filepath.Join(dir, "none.pem"), os.DevNull} {
		if _, err := open(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("got %v, want an error that names %s", err, file)
		}
	}
}

func TestEveryProblemHasATitle(t *testing.T) {
	for _, p := range []problem.Problem{problemNoUpstream, problemBody, problemTooSlow, problemTarget} {
		if p.Title == "" || p.Detail == "" || p.Status < 400 {
			t.Errorf("got %+v", p)
		}
	}
}

// Problems with a proxy that the environment names tell it from the upstream.
func TestEnvironmentProxyProblems(t *testing.T) {
	up := &httpclient.Upstream{URL: &url.URL{Scheme: "https", Host: "host:8443"}}
	for want, err := range map[string]error{
		"could not be reached": &net.OpError{Op: "proxyconnect", Net: "tcp", Err: syscall.ECONNREFUSED},
		"took too long":        &net.OpError{Op: "proxyconnect", Net: "tcp", Err: os.ErrDeadlineExceeded},
		"answered 407":         httpclient.ProxyRefusal(407),
	} {
		if got := explain(up, err); !strings.Contains(got.Detail, environmentProxy) || !strings.Contains(got.Detail, want) {
			t.Errorf("got %q, want %q", got.Detail, want)
		}
	}
}
