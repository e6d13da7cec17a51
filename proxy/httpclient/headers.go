package httpclient

import (
	"net/http"
	"strings"
)

// controlPrefix begins the names of headers between a client and Remora. They
// never reach an upstream. If the upstream is a Remora too, its own never reach
// the client, because this hop answers for itself.
const controlPrefix = "X-Remora-"

// hopByHop reports whether a header, by its canonical name, belongs to one
// connection rather than to the message (RFC 9110, 7.6.1, and older names that
// clients still send).
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Proxy-Authentication-Info", "Te", "Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// IsTrailer reports whether a field may follow a body: not if it frames a
// message, belongs to one connection or is Remora's own, because a peer that
// merges trailers into the head would believe it.
func IsTrailer(name string) bool {
	switch name {
	case "Content-Length", "Host", "Trailer":
		return false
	}
	return !hopByHop(name) && !isControl(name)
}

// passTrailers adds to dst the fields of src that may be passed on.
func passTrailers(dst, src http.Header) {
	for name, values := range src {
		if IsTrailer(name) {
			dst[name] = values
		}
	}
}

// isControl reports whether a header is Remora's own, in any letter case.
func isControl(name string) bool {
	return len(name) >= len(controlPrefix) && strings.EqualFold(name[:len(controlPrefix)], controlPrefix)
}

// cleanRequest removes from h, in place, what must not reach the upstream:
// hop-by-hop headers, those that Connection names, and X-Remora-*. TE stays if
// it asks for trailers. It adds nothing: if the client sent no User-Agent, none
// is invented, and X-Forwarded-* pass unchanged. Cleaning twice is harmless,
// and the second time writes nothing.
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

// CopyResponse copies the end-to-end headers of an upstream's response into
// dst. Values are shared with src. Where Date and Content-Type are absent it
// sets them to nil, so that net/http does not add what the upstream left out.
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

// HasToken reports whether one of the comma-separated lists has token, in any
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
