package identity

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// FromPage reports whether a browser page of another site may have sent the
// request. A page reaches listeners on or near the user's machine with that
// machine's address, so only headers that a page can't forge tell it apart.
// Where every tenant is identified by its key the answer is false: a page has
// only its own key. intercepted is the host that the request was intercepted on
// its way to, "" if it came to the reverse proxy.
func (r *Resolver) FromPage(req *http.Request, intercepted string) bool {
	if intercepted != "" {
		if !strings.EqualFold(strings.TrimSuffix(req.Host, ":443"), intercepted) {
			return true
		}
	} else if r.loopback && !isLocalHost(req.Host) {
		return true // DNS rebinding
	}
	if r.byKey && !r.loopback {
		return false
	}
	switch req.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin", "same-site":
	default:
		return true
	}
	return slices.ContainsFunc(req.Header["Origin"], func(o string) bool {
		u, err := url.Parse(o)
		return err != nil || u.Scheme != "http" && u.Scheme != "https" || !isLocalHost(u.Host)
	})
}

// isLocalHost reports whether the host of a Host header or an origin is this
// machine.
func isLocalHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
