package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api/mcp"
	"github.com/remora-proxy/remora/proxy/backend"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/listener"
)

// checkAddresses reports listeners with the same address, and upstreams that
// are a listener of this Remora: requests would loop.
func (c *Config) checkAddresses(r *report) {
	if reaches(c.Forward.Listen, c.Server.Listen) {
		r.add("forward.listen", fmt.Sprintf("must not be the address of listen (%s)", c.Server.Listen))
	}
	if c.API.Required() && (reaches(c.API.Listen, c.Server.Listen) || reaches(c.API.Listen, c.Forward.Listen)) {
		r.add("api.listen", "must not be the address of listen or of forward.listen")
	}
	if _, ok := listener.ParseAddress(c.API.Listen); !ok && c.API.Listen != APIOff {
		r.add("api.listen", "must be host:port, or off")
	}
	c.checkHealth(r)
	id := c.Proxy.Identity
	named := id.Tenant != identity.TenantAuto && id.Tenant != identity.TenantKey && id.Anonymous == identity.AnonymousKeyHolder
	if (c.Backend.Mode == backend.ModeGateway || c.Backend.Mode == backend.ModeCurated && c.Backend.Curated.Dir != "") && !id.Loopback && !named {
		r.add("memory.mode", "this memory is one person's: listen on loopback, or say that all requests are theirs with identity.tenant (a name) and identity.anonymous: keyHolder")
	}
	if c.Backend.Mode == backend.ModeGateway && slices.Contains(c.API.MCP, mcp.SetMemory) {
		r.add("api.mcp", "must not have memory in mode gateway, whose memory is elsewhere")
	}
	if err := (mcp.Options{Compat: c.API.MCP}).Validate(); err != nil {
		r.add("api.mcp", err.Error())
	}
	if n := len(c.API.Token); n > 0 && n < minToken {
		r.add("api.token", fmt.Sprintf("must have at least %d bytes", minToken))
	}
	for i, u := range c.Proxy.Upstreams {
		for _, l := range []struct{ key, address string }{{"listen", c.Server.Listen}, {"forward.listen", c.Forward.Listen}, {"api.listen", c.API.Listen}, {"health.listen", c.Health}} {
			if reaches(hostPort(u.URL), l.address) {
				r.add(fmt.Sprintf("upstreams[%d].url", i),
					fmt.Sprintf("must not be Remora's own address, %s (%s): requests would loop", l.key, l.address))
			}
		}
	}
}

// checkHealth reports a health listener that is none, or another listener.
func (c *Config) checkHealth(r *report) {
	if c.Health == "" {
		return
	}
	if _, ok := listener.ParseAddress(c.Health); !ok {
		r.add("health.listen", "must be host:port, or empty")
	}
	if reaches(c.Health, c.Server.Listen) || reaches(c.Health, c.Forward.Listen) || reaches(c.Health, c.API.Listen) {
		r.add("health.listen", "must not be the address of listen, of forward.listen or of api.listen")
	}
}

// minToken is the least length of an admin token, in bytes.
const minToken = 16

// checkAuthorities reports certificate authorities of upstreams that can't be
// read.
func (c *Config) checkAuthorities(r *report) {
	for i, u := range c.Proxy.Upstreams {
		if _, err := u.Roots(); err != nil {
			r.add(fmt.Sprintf("upstreams[%d].caFile", i), err.Error())
		}
	}
}

// hostPort returns the host and port of a URL, or "" if it has none.
func hostPort(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// reaches reports whether a connection to address may arrive at the listener on
// listen. It resolves no names but localhost.
func reaches(address, listen string) bool {
	host, port, err := net.SplitHostPort(address)
	own, ownPort, ownErr := net.SplitHostPort(listen)
	if err != nil || ownErr != nil || port != ownPort || port == "0" {
		return false
	}
	if strings.EqualFold(host, own) {
		return true
	}
	there, here := parseHost(host), parseHost(own)
	switch {
	case here.everywhere:
		return (there.everywhere || there.loopback) && !(here.four && there.six) // 0.0.0.0 accepts IPv4 only
	case here.local: // an unspecified address connects to 127.0.0.1 or [::1], and so does localhost
		return there.everywhere || there.local && (there.named || here.named)
	}
	return false
}

// hostKind classifies the host of an address on this machine.
type hostKind struct {
	everywhere bool // empty or an unspecified address
	loopback   bool
	local      bool // localhost, or an address it resolves to
	named      bool // localhost
	four, six  bool // a literal of that version
}

func parseHost(host string) hostKind {
	if host == "" {
		return hostKind{everywhere: true}
	}
	if strings.EqualFold(host, "localhost") {
		return hostKind{loopback: true, local: true, named: true}
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return hostKind{}
	}
	ip = ip.Unmap()
	return hostKind{
		everywhere: ip.IsUnspecified(), loopback: ip.IsLoopback(), four: ip.Is4(), six: ip.Is6(),
		local: ip == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || ip == netip.IPv6Loopback(),
	}
}
