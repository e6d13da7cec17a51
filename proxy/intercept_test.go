package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/forward"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
)

const interceptedHost = "api.openai.com"

func startForward(t *testing.T, cfg forward.Config, h *Handler, a *forward.Authority) (addr string, stop func() error) {
	t.Helper()
	sc := listener.DefaultConfig()
	sc.Drain = patience
	f, err := forward.New(cfg, h.For, a, sc, nil)
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

func authority(t *testing.T, hosts ...string) (*forward.Authority, *x509.CertPool) {
	t.Helper()
	if len(hosts) == 0 {
		hosts = []string{interceptedHost}
	}
	cert, key, err := forward.CreateAuthority(hosts, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := forward.OpenAuthority(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return a, pool
}

// intercepted is a forward listener that decrypts interceptedHost and sends it
// on, over TLS, to upstream.
type intercepted struct {
	*rig
	door   string
	stop   func() error
	roots  *x509.CertPool
	client func(h2 bool) *http.Client
}

func newIntercepted(t *testing.T, upstream http.HandlerFunc, change func(*forward.Config)) *intercepted {
	t.Helper()
	up := httptest.NewUnstartedServer(upstream)
	up.EnableHTTP2 = true
	up.StartTLS()
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "upstream.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	i := &intercepted{rig: newRig(t, func(c *Config, _ *Deps) {
		c.Upstreams = append(c.Upstreams, httpclient.UpstreamConfig{Name: "secure", URL: up.URL, Paths: []string{"/secure"}, CAFile: file})
	})}
	a, roots := authority(t)
	cfg := forward.DefaultConfig()
	cfg.Listen, cfg.Drain, cfg.AllowPrivate = "127.0.0.1:0", 20*time.Millisecond, true
	cfg.Intercept = []string{interceptedHost + "=secure"}
	if change != nil {
		change(&cfg)
	}
	i.roots = roots
	i.door, i.stop = startForward(t, cfg, i.h, a)
	i.client = func(h2 bool) *http.Client {
		tr := &http.Transport{
			Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: i.door}), ForceAttemptHTTP2: h2, DisableCompression: true,
			TLSClientConfig: &tls.Config{RootCAs: roots},
		}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	return i
}

// An agent that knows nothing but HTTPS_PROXY and the authority gets its
// memory, over HTTP/1.1 and HTTP/2.
func TestInterceptedRequestsAreRemembered(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", h2), func(t *testing.T) {
			bodies := make(chan string, 4)
			i := newIntercepted(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				bodies <- string(b)
				_, contentType, body := replyWith("fine")(received{})
				w.Header().Set("Content-Type", contentType)
				_, _ = io.WriteString(w, body)
			}, nil)
			i.recall.set("the user's cat is called Miso")
			req, _ := http.NewRequest("POST", "https://"+interceptedHost+"/v1/chat/completions", strings.NewReader(chat("user: what is my cat called?")))
			req.Header.Set("Authorization", "Bearer sk-rig")
			i.posted++
			resp, err := i.client(h2).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if got := Status(resp.Header.Get(headerStatus)); got != StatusInjected || h2 != (resp.ProtoMajor == 2) {
				t.Errorf("got status %s over %s", got, resp.Proto)
			}
			if got := <-bodies; !strings.Contains(got, "Miso") {
				t.Errorf("the upstream got no memory: %s", got)
			}
			if got := resp.TLS.PeerCertificates[0].DNSNames; len(got) != 1 || got[0] != interceptedHost {
				t.Errorf("got a certificate for %v", got)
			}
			i.served.Add(1) // no handler of the rig's
			for deadline := time.Now().Add(patience); len(i.turns()) == 0; {
				if time.Now().After(deadline) {
					t.Fatal("the turn is not stored")
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// Routes, request heads and answers are the reverse door's; only the host
// decides where a request goes.
func TestInterceptedHostDecidesTheUpstream(t *testing.T) {
	i := newIntercepted(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "secure "+r.URL.String()) }, nil)
	for _, path := range []string{"/", "/v1/messages?beta=true", "/elsewhere"} {
		resp, err := i.client(false).Get("https://" + interceptedHost + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got, want := string(b), "secure "+path; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := i.sent(); len(got) != 0 {
		t.Errorf("the upstream of / got %d requests", len(got))
	}
}

// A page that goes through the door must not reach the memory of whoever runs
// it.
func TestInterceptedPagesGetNoMemory(t *testing.T) {
	i := newIntercepted(t, func(w http.ResponseWriter, _ *http.Request) {}, nil)
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		func(r *http.Request) { r.Host = "other.example" },
	} {
		req, _ := http.NewRequest("POST", "https://"+interceptedHost+"/v1/chat/completions", strings.NewReader(chat("user: hi")))
		change(req)
		resp, err := i.client(false).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := Status(resp.Header.Get(headerStatus)); got != StatusOff {
			t.Errorf("got %s, want off", got)
		}
	}
}

// Each event arrives while the next one is still held back.
func TestInterceptedStreams(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		next := make(chan struct{})
		i := newIntercepted(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for n := range 5 {
				_, _ = fmt.Fprintf(w, "data: %d\n\n", n)
				_ = http.NewResponseController(w).Flush()
				<-next
			}
		}, nil)
		resp, err := i.client(h2).Post("https://"+interceptedHost+"/v1/chat/completions", "application/json", strings.NewReader(chat("user: hi")))
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(resp.Body)
		for n := range 5 {
			line, err := in.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", n); err != nil || line != want {
				t.Fatalf("got %q, %v, want %q", line, err, want)
			}
			_, _ = in.ReadString('\n')
			next <- struct{}{}
		}
		resp.Body.Close()
	}
}

func TestInterceptedClientLeavingCancelsUpstream(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		began, ended := make(chan struct{}), make(chan error, 1)
		i := newIntercepted(t, func(_ http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done()
			ended <- nil
		}, nil)
		ctx, leave := context.WithCancel(context.Background())
		req, _ := http.NewRequestWithContext(ctx, "GET", "https://"+interceptedHost+"/v1/models", nil)
		go func() {
			<-began
			leave()
		}()
		if resp, err := i.client(h2).Do(req); err == nil {
			resp.Body.Close()
			t.Error("got an answer, want none")
		}
		if err := wait(t, ended); err != nil {
			t.Error(err)
		}
		leave()
	}
}

// Shutdown lets an intercepted stream finish, well past the time that tunnels
// are given.
func TestInterceptedStreamsOutliveTheDoor(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	i := newIntercepted(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		close(began)
		<-finish
		_, _ = io.WriteString(w, "last")
	}, nil)
	resp, err := i.client(false).Get("https://" + interceptedHost + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- i.stop() }()
	time.AfterFunc(100*time.Millisecond, func() { close(finish) }) // several times the forward listener's Drain
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "first last" {
		t.Errorf("got %q, %v", b, err)
	}
	if err := wait(t, stopped); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// Places are given back when intercepted connections close, and held while they
// are open.
func TestInterceptedConnectionsAreBounded(t *testing.T) {
	i := newIntercepted(t, func(http.ResponseWriter, *http.Request) {}, func(c *forward.Config) { c.MaxTunnels = 1 })
	first := i.client(false)
	get := func(c *http.Client) error {
		resp, err := c.Get("https://" + interceptedHost + "/")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	if err := get(first); err != nil {
		t.Fatal(err)
	}
	if err := get(i.client(false)); err == nil || !strings.Contains(err.Error(), "Service Unavailable") {
		t.Errorf("second connection: got %v, want a 503", err)
	}
	first.CloseIdleConnections()
	for deadline := time.Now().Add(patience); get(i.client(false)) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the place was not given back")
		}
		time.Sleep(time.Millisecond)
	}
}

// What is not on the list keeps its own certificate, or is refused where the
// door is for the list alone.
func TestInterceptLeavesOthersAlone(t *testing.T) {
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "own") }))
	defer target.Close()
	for _, others := range []string{forward.OthersTunnel, forward.OthersRefuse} {
		i := newIntercepted(t, func(http.ResponseWriter, *http.Request) {}, func(c *forward.Config) { c.Others = others })
		i.roots.AddCert(target.Certificate())
		resp, err := i.client(false).Get(target.URL)
		if others == forward.OthersRefuse {
			if err == nil || !strings.Contains(err.Error(), "Forbidden") {
				t.Errorf("got %v, want 403", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.TLS.PeerCertificates[0]; !got.Equal(target.Certificate()) {
			t.Errorf("got a certificate of %v, want the target's own", got.Issuer)
		}
	}
}

// A client that does not trust the authority fails by itself and leaves nothing
// behind.
func TestInterceptedClientWithoutTrust(t *testing.T) {
	i := newIntercepted(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came through") }, func(c *forward.Config) { c.MaxTunnels = 1 })
	for range 3 { // the place is free again each time
		client := &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: i.door}), TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()},
		}}
		deadline := time.Now().Add(patience)
		for {
			_, err := client.Get("https://" + interceptedHost + "/")
			if err == nil {
				t.Fatal("got an answer")
			}
			if strings.Contains(err.Error(), "unknown authority") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
}
