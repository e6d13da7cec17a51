package proxy

import (
	"bytes"
	"net/http"
	"net/url"
)

// doorRequest is one request that a doorConn serves itself, and what lives as long as it.
type doorRequest struct {
	request http.Request
	url     url.URL
	body    doorBody
	values  [12]string // of the head's fields
}

// BUG(proxy): a head that net/http reads, of a request (chunked, with more than 32 fields, ...) or of an answer that comes by
// http.Transport over HTTP/1.1, gets `Cache-Control: no-cache` where it has `Pragma: no-cache` and no Cache-Control.

// ordinaryRequest reads the head that b begins with and returns its length with the request, which has body's length in
// body.left and no body yet. It returns nil for all but a GET or POST of HTTP/1.1 whose head is here whole, has lines that end in
// CRLF, values of printable ASCII, one Host and at most one Content-Length of at most passBuffer, and which asks nothing else of
// the connection: FuzzOrdinaryRequest holds it to that what it reads is what http.ReadRequest does. It may bring names of fields in
// b to their canonical form even so.
func ordinaryRequest(b []byte, blank *http.Request) (*doorRequest, int) {
	const proto, post, get = " HTTP/1.1", "POST ", "GET "
	var at int
	switch {
	case bytes.HasPrefix(b, []byte(post)):
		at = len(post)
	case bytes.HasPrefix(b, []byte(get)):
		at = len(get)
	default:
		return nil, 0
	}
	target, plain := at, true
	for ; at < len(b) && b[at] > ' ' && b[at] <= '~'; at++ {
		plain = plain && plainPath(b[at])
	}
	first := at + len(proto)
	if target == at || b[target] != '/' || first+1 >= len(b) || string(b[at:first]) != proto || b[first] != '\r' || b[first+1] != '\n' {
		return nil, 0
	}

	var fields [mostFields]field
	n, hosts, length := 0, 0, int64(-1)
	host := field{}
	end := first + 2
	for ; ; n++ {
		if end+1 < len(b) && b[end] == '\r' && b[end+1] == '\n' {
			end += 2
			break
		}
		name, colon := end, canonical(b, end)
		if colon < 0 || n == mostFields {
			return nil, 0
		}
		value, last := colon+1, lineEnd(b, colon+1)
		if last < 0 {
			return nil, 0
		}
		end = last + 2
		for ; value < last && b[value] == ' '; value++ {
		}
		for ; last > value && b[last-1] == ' '; last-- {
		}
		f := field{uint16(name), uint16(colon), uint16(value), uint16(last)}
		switch string(b[name:colon]) {
		case "Host":
			host = f
			if hosts++; !plainHost(b[value:last]) {
				return nil, 0
			}
			n-- // it is no field of the request's header
			continue
		case "Content-Length":
			if length >= 0 {
				return nil, 0
			}
			if length = digits(b[value:last]); length < 0 || length > passBuffer {
				return nil, 0
			}
		case "Connection":
			if !bytes.EqualFold(b[value:last], []byte("keep-alive")) {
				return nil, 0
			}
		case "Transfer-Encoding", "Trailer", "Expect", "Upgrade", "Http2-Settings":
			return nil, 0
		}
		fields[n] = f
	}
	if hosts != 1 || end > mostHead {
		return nil, 0
	}

	text := string(b[:end]) // one for all of it
	a := &doorRequest{request: *blank}
	r := &a.request
	r.Method, r.Proto, r.ProtoMajor, r.ProtoMinor = http.MethodPost, proto[1:], 1, 1
	if b[0] == get[0] {
		r.Method = http.MethodGet
	}
	if r.RequestURI = text[target:at]; plain && (len(r.RequestURI) < 2 || r.RequestURI[1] != '/') {
		a.url.Path = r.RequestURI
		r.URL = &a.url
	} else {
		var err error
		if r.URL, err = url.ParseRequestURI(r.RequestURI); err != nil {
			return nil, 0
		}
	}
	r.Host = text[host.value:host.end]
	values := a.values[:]
	if n > len(values) {
		values = make([]string, n)
	}
	r.Header = make(http.Header, n)
	for i, f := range fields[:n] {
		name := text[f.name:f.colon]
		if more := r.Header[name]; more != nil {
			r.Header[name] = append(more, text[f.value:f.end])
			continue
		}
		values[i] = text[f.value:f.end]
		r.Header[name] = values[i : i+1 : i+1]
	}
	r.Body = http.NoBody
	if r.ContentLength = max(length, 0); length > 0 {
		a.body.left = length
	}
	return a, end
}

// plainPath says whether c stands for itself in a path.
func plainPath(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '/' || c == '-' || c == '.' || c == '_' || c == '~'
}

// plainHost says whether b is a name or an address, with a port perhaps.
func plainHost(b []byte) bool {
	for _, c := range b {
		if (!plainPath(c) || c == '/') && c != ':' && c != '[' && c != ']' {
			return false
		}
	}
	return len(b) > 0
}
