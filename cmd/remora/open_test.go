package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/proxy/listener"
)

// fixedLink is a page whose links are all the same.
type fixedLink struct{}

func (fixedLink) LoginLink() (string, time.Time) {
	return "/login?code=x", time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
}

// TestOfferPage checks when serve prints a login link, and when it does not.
func TestOfferPage(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(s *system)
		journal string
		host    string // in the link, "" = none is printed
	}{
		"on loopback":       {host: "127.0.0.1"},
		"by name":           {change: func(s *system) { s.config.API.Listen = "localhost:0" }, host: "localhost"},
		"off loopback":      {change: func(s *system) { s.config.API.Listen = "0.0.0.0:0" }},
		"without listener":  {change: func(s *system) { s.control = nil }},
		"without a page":    {change: func(s *system) { s.plane.links = nil }},
		"in a container":    {change: func(s *system) { s.config.Proxy.Identity.Container = true }},
		"traces are there":  {change: func(s *system) { s.telemetry.TracesTo = export.Console }},
		"into the journal":  {journal: "8:1234"},
		"traces elsewhere":  {change: func(s *system) { s.telemetry.TracesTo = "otlp" }, host: "127.0.0.1"},
		"on IPv6 unbounded": {change: func(s *system) { s.config.API.Listen = "[::]:0" }},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Default()
			c.API.Listen = "127.0.0.1:0"
			own := c.Server
			own.Listen = c.API.Listen
			s := &system{config: c, control: listener.New(http.NotFoundHandler(), own, nil)}
			if err := s.control.Listen(); err != nil {
				t.Fatal(err)
			}
			s.plane.once.Do(func() { s.plane.links = fixedLink{} })
			port := s.control.Addr().(*net.TCPAddr).Port
			if test.change != nil {
				test.change(s)
			}
			var out bytes.Buffer
			s.offerPage(&out, environment("JOURNAL_STREAM", test.journal))
			want := ""
			if test.host != "" {
				want = fmt.Sprintf("Open http://%s:%d/login?code=x to look at the memory (valid once, for 10 minutes; remora open makes another)\n", test.host, port)
			}
			if out.String() != want {
				t.Errorf("got %q, want %q", out.String(), want)
			}
		})
	}
}

func TestPageURL(t *testing.T) {
	for configured, want := range map[string]string{
		"127.0.0.1:0":         "http://127.0.0.1:8788",
		"localhost:8788":      "http://localhost:8788",
		"[::1]:8788":          "http://[::1]:8788",
		"0.0.0.0:8788":        "http://127.0.0.1:8788",
		"[::]:8788":           "http://127.0.0.1:8788",
		":8788":               "http://127.0.0.1:8788",
		"remora.example:8788": "http://remora.example:8788",
	} {
		if got := pageURL(configured, &net.TCPAddr{IP: net.IPv6zero, Port: 8788}); got != want {
			t.Errorf("%s: got %s, want %s", configured, got, want)
		}
	}
}

// TestOpener checks that a URL is an argument of its own, and that no shell
// reads it.
func TestOpener(t *testing.T) {
	for _, test := range []struct {
		system, display, wayland string
		want                     []string
	}{
		{"linux", "", "", nil},
		{"linux", ":0", "", []string{"xdg-open"}},
		{"freebsd", "", "wayland-0", []string{"xdg-open"}},
		{"darwin", "", "", []string{"open"}},
		{"windows", "", "", []string{"rundll32", "url.dll,FileProtocolHandler"}},
	} {
		got := opener(test.system, environment("DISPLAY", test.display, "WAYLAND_DISPLAY", test.wayland))
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %q", test, got)
		}
		if len(got) > 0 && strings.HasSuffix(got[0], "sh") {
			t.Errorf("%q is a shell", got)
		}
	}
}
