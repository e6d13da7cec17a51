package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// addresses finds doors that would take each other's place, and upstreams that are a door of this Remora: what is sent there would come back to
// it, again and again.
func (c *config) addresses(found *problems, origins map[string]string) {
	doors := []struct{ key, address string }{{"listen", c.server.Listen}, {"forward.listen", c.forward.Listen}}
	if meets(c.forward.Listen, c.server.Listen) {
		found.add("forward.listen", originOf("forward.listen", origins), fmt.Sprintf("must not be the address of listen (%s)", c.server.Listen))
	}
	for i, u := range c.proxy.Upstreams {
		for _, door := range doors {
			if meets(hostPort(u.URL), door.address) {
				key := fmt.Sprintf("upstreams[%d].url", i)
				found.add(key, originOf(key, origins), fmt.Sprintf("must not be Remora's own address, %s (%s): requests would go round in a circle", door.key, door.address))
			}
		}
	}
}

// authorities reads the files of authorities that upstreams name, which opening them would fail without.
func (c *config) authorities(found *problems, origins map[string]string) {
	for i, u := range c.proxy.Upstreams {
		if _, err := u.Roots(); err != nil {
			key := fmt.Sprintf("upstreams[%d].caFile", i)
			found.add(key, originOf(key, origins), err.Error())
		}
	}
}

// hostPort is where a URL leads, "" where that can't be told.
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

// meets says whether who goes to an address may come to the one that is listened on. Names but localhost are not asked for.
func meets(address, listen string) bool {
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
		return (there.everywhere || there.loopback) && !(here.four && there.six) // 0.0.0.0 is listened on for IPv4 alone
	case here.local: // an unspecified address leads to 127.0.0.1 or [::1], and so does localhost
		return there.everywhere || there.local && (there.named || here.named)
	}
	return false
}

// hostKind is what a host of an address may be, of this machine.
type hostKind struct {
	everywhere bool // none, or an unspecified address
	loopback   bool
	local      bool // localhost, or what it leads to
	named      bool // localhost
	four, six  bool // a literal
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
