package httpclient

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The errors of a proxy that the environment names tell it from the upstream,
// and never quote its password.
func TestEnvironmentProxyErrors(t *testing.T) {
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	defer auth.Close()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	isProxyConnect := func(err error) bool {
		op, ok := errors.AsType[*net.OpError](err)
		return ok && op.Op == "proxyconnect"
	}
	for name, c := range map[string]struct {
		proxy string
		is    func(error) bool
	}{
		"dead":       {dead.Listener.Addr().String(), isProxyConnect},
		"nameless":   {"no-such-proxy.invalid:3128", isProxyConnect},
		"wants keys": {auth.Listener.Addr().String(), func(err error) bool { return errors.Is(err, ProxyRefusal(http.StatusProxyAuthRequired)) }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultTransportConfig()
			cfg.ProxyFromEnvironment = true
			up, err := openUpstream(UpstreamConfig{Name: "up", URL: "https://upstream.test:8443", Paths: []string{"/"}}, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer up.closeIdle()
			// net/http reads the environment only once in a process.
			up.transport.Proxy = func(*http.Request) (*url.URL, error) {
				return &url.URL{Scheme: "http", Host: c.proxy, User: url.UserPassword("u", "s3cret")}, nil
			}
			in, body := h1Incoming(t, h1Get)
			_, err = up.RoundTrip(httptest.NewRecorder(), in, body)
			if !c.is(err) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v", err)
			}
		})
	}
}
