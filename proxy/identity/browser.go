package identity

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
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
	return r.PageMark(req, intercepted) != ""
}

// PageMark returns what makes a request look like that of a page (see
// FromPage), for people, or "".
func (r *Resolver) PageMark(req *http.Request, intercepted string) string {
	if intercepted != "" {
		if !strings.EqualFold(strings.TrimSuffix(req.Host, ":443"), intercepted) {
			return "its Host is not the host that was connected to"
		}
	} else if r.loopback && !isLocalHost(req.Host) { // DNS rebinding
		return "its Host is not a name of this machine (localhost, a loopback address, host.docker.internal and the like)"
	}
	if r.byKey && !r.loopback {
		return ""
	}
	switch req.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin", "same-site":
	default:
		return "its Sec-Fetch-Site names another site"
	}
	if slices.ContainsFunc(req.Header["Origin"], func(o string) bool {
		u, err := url.Parse(o)
		return err != nil || u.Scheme != "http" && u.Scheme != "https" || !isLocalHost(u.Host)
	}) {
		return "its Origin is another site"
	}
	return ""
}

// hostNames are names by which a container reaches the machine that it runs on.
// A page cannot have such an address: .internal is reserved for private use, so
// that nobody can own a name in it.
var hostNames = regexp.MustCompile(`(?i)^(host\.[a-z0-9-]+|(gateway|kubernetes)\.docker)\.internal\.?$`)

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
	return err == nil && a.Unmap().IsLoopback() || err != nil && hostNames.MatchString(host)
}
