package rest

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/proxy/problem"
)

// GuardOptions configure a Guard.
type GuardOptions struct {
	// Loopback: the listener can be reached from this machine only, where any
	// page in a browser can reach it, too.
	Loopback bool
	// Hosts are names by which the listener may be called on loopback, besides
	// those of loopback itself.
	Hosts []string
	Name  string // what a panic in the log is said to be in; "" = control plane
	Log   *slog.Logger
}

// Guard stands before all faces. It gives each request an id, refuses what a
// page of another site sends, and has no cache keep an answer.
func Guard(next http.Handler, o GuardOptions) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Name == "" {
		o.Name = "control plane"
	}
	sites := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set(request.HeaderID, requestID(r.Header.Get(request.HeaderID)))
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		if o.Loopback && !ownHost(r.Host, o.Hosts) {
			problem.New(http.StatusForbidden, "host-forbidden", "this name does not lead here; api.hosts adds it").Write(w)
			return
		}
		if sites.Check(r) != nil || o.Loopback && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			problem.New(http.StatusForbidden, "host-forbidden", "a page of another site may not do this").Write(w)
			return
		}
		defer func() {
			p := recover()
			switch {
			case p == nil:
			case p == http.ErrAbortHandler:
				panic(p)
			default: // its value may hold content
				o.Log.Error("panic", "in", o.Name, "request", h.Get(request.HeaderID), "stack", string(debug.Stack()))
				problem.New(http.StatusInternalServerError, "internal", "an internal error, which is in Remora's log").Write(w)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// requestID returns the id that a client gave, if it looks like one, or a new
// one.
func requestID(given string) string {
	if len(given) >= 8 && len(given) <= 64 && !strings.ContainsFunc(given, func(r rune) bool {
		return !(r == '-' || r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
	}) {
		return given
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ownHost reports whether a Host header names this machine.
func ownHost(host string, others []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return slices.ContainsFunc(others, func(o string) bool { return strings.EqualFold(o, host) })
}
