package httpclient

import (
	"net/http"
	"strings"
)

// controlPrefix begins the names of the headers between a client and Remora.
// They never reach an upstream, and what an upstream that is itself a Remora
// says in them never reaches the client: this hop speaks for itself.
const controlPrefix = "X-Remora-"

// hopByHop says whether a header, by its canonical name, belongs to one
// connection (RFC 9110, 7.6.1, and the older names that clients still send)
// rather than to the message.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Proxy-Authentication-Info", "Te", "Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// isTrailer says whether a field may follow a body: not what frames a message,
// belongs to one connection or is Remora's own. A peer that merges trailers
// into the head would believe it.
func IsTrailer(name string) bool {
	switch name {
	case "Content-Length", "Host", "Trailer":
		return false
	}
	return !hopByHop(name) && !isControl(name)
}

// passTrailers adds to dst what of src may be passed on.
func passTrailers(dst, src http.Header) {
	for name, values := range src {
		if IsTrailer(name) {
			dst[name] = values
		}
	}
}

// isControl says whether a header is Remora's own, in any letter case.
func isControl(name string) bool {
	return len(name) >= len(controlPrefix) && strings.EqualFold(name[:len(controlPrefix)], controlPrefix)
}

// cleanRequest removes from h, in place, what must not go to the upstream:
// hop-by-hop headers, those that Connection names, and X-Remora-*. TE stays
// where it asks for trailers. It adds nothing: a User-Agent that the client did
// not send is kept from being invented, and X-Forwarded-* pass as they came.
// Cleaning twice is harmless and the second time writes nothing.
func cleanRequest(h http.Header) {
	trailers := HasToken(h["Te"], "trailers")
	removeNamed(h, h["Connection"])
	for name := range h {
		if hopByHop(name) || isControl(name) {
			if name == "Te" && trailers && len(h[name]) == 1 && h[name][0] == "trailers" {
				continue
			}
			delete(h, name)
		}
	}
	if trailers {
		if _, kept := h["Te"]; !kept {
			h["Te"] = []string{"trailers"}
		}
	}
	if _, sent := h["User-Agent"]; !sent {
		h["User-Agent"] = nil // http.Transport would send its own
	}
}

// copyResponse puts the end-to-end headers of an upstream's response into dst.
// Values are shared with src, not copied. net/http must not add what the
// upstream left out, so Date and Content-Type are held open where they are
// absent.
func CopyResponse(dst, src http.Header) {
	named := src["Connection"]
	for name, values := range src {
		if hopByHop(name) || isControl(name) {
			continue
		}
		if named != nil && HasToken(named, name) {
			continue
		}
		dst[name] = values
	}
	if _, sent := dst["Date"]; !sent {
		dst["Date"] = nil
	}
	if _, sent := dst["Content-Type"]; !sent {
		dst["Content-Type"] = nil
	}
}

// removeNamed deletes the headers that the lists name.
func removeNamed(h http.Header, lists []string) {
	for _, list := range lists {
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name != "" && name != "Te" {
				delete(h, name)
			}
		}
	}
}

// listed says whether one of the comma-separated lists holds token, in any
// letter case. Parameters after a semicolon do not count.
func HasToken(lists []string, token string) bool {
	for _, list := range lists {
		for item := range strings.SplitSeq(list, ",") {
			item, _, _ = strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}
