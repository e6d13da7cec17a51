package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/client"
	"github.com/remora-proxy/remora/cmd/remora/export"
)

// openCommand opens the web page of the control plane.
func openCommand() command {
	return command{
		name:    "open",
		summary: "open the web page of the control plane in a browser",
		usage: `remora open [--print] [--json]
       with [--data DIRECTORY] [--config FILE], or [--server URL] [--token-file FILE]

The link logs a browser in once, within 10 minutes.`,
		define: func(f *pflag.FlagSet) runner {
			r := &reach{flags: storeFlags(f), of: &selection{}}
			serverFlags(f, r)
			f.BoolVar(&r.json, "json", false, "only print the link, as JSON with the time when it expires")
			print := f.Bool("print", false, "only print the link")
			return func(ctx context.Context, s streams, _ []string) error {
				v := &client.Open{}
				if !*print {
					v.Browse = func(ctx context.Context, url string) error { return browse(ctx, s.getenv, url) }
				}
				return r.run(ctx, s, needRemora, v)
			}
		},
	}
}

// browse starts the user's browser. It does not wait for it: what starts a
// browser may run for as long as that does.
func browse(ctx context.Context, getenv func(string) string, url string) error {
	args := opener(runtime.GOOS, getenv)
	if args == nil {
		return errors.New("there is no screen")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], append(args[1:], url)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "REMORA_") }) // which may be keys
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// opener returns the program that opens a URL given as its last argument, with
// its first arguments, or nil. No shell reads the URL.
func opener(system string, getenv func(string) string) []string {
	switch {
	case system == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case system == "darwin":
		return []string{"open"}
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "": // it would open a browser in this terminal
		return nil
	}
	return []string{"xdg-open"}
}

// loginLinks makes login links for the web page.
type loginLinks interface {
	LoginLink() (path string, expires time.Time)
}

// loginLink makes a login link to the listener of the control plane. It is ""
// if there is no page, or no listener.
func (s *system) loginLink() (url string, expires time.Time) {
	links := s.controlPlane().links
	if links == nil || s.control == nil {
		return "", time.Time{}
	}
	path, expires := links.LoginLink()
	return pageURL(s.config.API.Listen, s.control.Addr()) + path, expires
}

// pageURL returns the URL of the web page on a listener. The name that is
// configured stays, except where it means all addresses of this machine.
func pageURL(configured string, at net.Addr) string {
	host, _, err := net.SplitHostPort(configured)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	_, port, _ := net.SplitHostPort(at.String()) // a TCP listener's address always has one
	return "http://" + net.JoinHostPort(host, port)
}

// offerPage prints a login link for the person who has started this Remora. It
// prints none where the output is kept as a log or read as traces, and none off
// loopback, where the page is reached by another name and with TLS.
func (s *system) offerPage(out io.Writer, getenv func(string) string) {
	c := s.config
	journal := getenv("JOURNAL_STREAM") != "" && !isTerminal(out)
	if journal || c.Proxy.Identity.Container || !c.API.Loopback() || s.telemetry.TracesTo == export.Console {
		return
	}
	if url, _ := s.loginLink(); url != "" {
		fmt.Fprintf(out, "Open %s to look at the memory (valid once, for 10 minutes; remora open makes another)\n", url)
	}
}
