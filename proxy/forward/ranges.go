package forward

import "net/netip"

// What is on the public internet, by IANA's registries of special-purpose
// addresses (RFC 6890: iana-ipv4-special-registry, iana-ipv6-special-registry)
// and of IPv6 address space, of which only 2000::/3 is given out. Anything that
// a registry does not call globally reachable is refused, and so is what leads
// through a translation, which hides where. A few single addresses within these
// ranges are global (such as 192.0.0.9/32); no LLM API is served there.

// global6 is the space of IPv6 from which addresses are assigned.
var global6 = netip.MustParsePrefix("2000::/3")

// nonPublic are the ranges that are not public, of IPv4 and within global6.
var nonPublic = prefixes(
	"0.0.0.0/8",         // this network, RFC 791
	"10.0.0.0/8",        // private, RFC 1918
	"100.64.0.0/10",     // shared by carriers, RFC 6598
	"127.0.0.0/8",       // loopback, RFC 1122
	"169.254.0.0/16",    // link-local, RFC 3927
	"172.16.0.0/12",     // private, RFC 1918
	"192.0.0.0/24",      // protocol assignments, RFC 6890
	"192.0.2.0/24",      // documentation, RFC 5737
	"192.88.99.0/24",    // 6to4 relays, RFC 7526
	"192.168.0.0/16",    // private, RFC 1918
	"198.18.0.0/15",     // benchmarks, RFC 2544
	"198.51.100.0/24",   // documentation, RFC 5737
	"203.0.113.0/24",    // documentation, RFC 5737
	"224.0.0.0/4",       // multicast, RFC 5771
	"240.0.0.0/4",       // reserved, RFC 1112, and broadcast
	"2001::/23",         // protocol assignments, Teredo, ORCHID, RFC 2928
	"2001:db8::/32",     // documentation, RFC 3849
	"2002::/16",         // 6to4, RFC 3056
	"2620:4f:8000::/48", // AS112 delegation, RFC 7535
	"3fff::/20",         // documentation, RFC 9637
)

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// public reports whether an address is on the public internet. ::ffff:a.b.c.d
// is a.b.c.d.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.Is6() && !global6.Contains(a) || !a.IsValid() {
		return false
	}
	for _, p := range nonPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
