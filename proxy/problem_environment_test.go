package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// What a proxy on the way does is not told as the upstream's doing, nor is its URL, which holds a password.
func TestProxyOnTheWayIsNamed(t *testing.T) {
	asks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	defer asks.Close()
	refused := httptest.NewServer(http.NotFoundHandler())
	refused.Close()
	for name, c := range map[string]struct{ proxy, want string }{
		"dead":       {refused.Listener.Addr().String(), "could not be reached"},
		"nameless":   {"no-such-proxy.invalid:3128", "could not be reached"},
		"wants keys": {asks.Listener.Addr().String(), "answered 407"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultTransportConfig()
			cfg.ProxyFromEnvironment = true
			p, err := openPlane([]UpstreamConfig{{Name: "up", URL: "https://upstream.test:8443", Paths: []string{"/"}}}, cfg, DefaultStreamConfig())
			if err != nil {
				t.Fatal(err)
			}
			defer p.router.closeIdle()
			// net/http reads the environment once in a process.
			p.router.upstreams[0].transport.Proxy = func(*http.Request) (*url.URL, error) {
				return &url.URL{Scheme: "http", Host: c.proxy, User: url.UserPassword("u", "s3cret")}, nil
			}
			resp, body, err := exchangeRaw(t, hopServe(t, hop{p: p}), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, "the proxy that") || !strings.Contains(body, c.want) || strings.Contains(body, "s3cret") {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
		})
	}
}
