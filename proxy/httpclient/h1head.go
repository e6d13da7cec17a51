package httpclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
)

// readResponse is http.ReadResponse, at a third of its cost where the response
// is an ordinary one: see ordinary. What is not is left to it, whole.
func readResponse(br *bufio.Reader, in *http.Request) (*http.Response, error) {
	if _, err := br.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	b, _ := br.Peek(br.Buffered())
	if resp, n := ordinary(b, in.Method); resp != nil {
		_, _ = br.Discard(n) // they are there
		return resp, nil
	}
	return http.ReadResponse(br, in)
}

// field is where a header field stands in a head.
type field struct{ name, colon, value, end uint16 }

// mostHead is how long an ordinary head may be, in bytes: what is buffered at
// once.
const mostHead = h1ReadBuffer

// mostFields is how many fields a head may have to be ordinary.
const mostFields = 32

// ordinary reads the head that b begins with and returns its length with the
// response, whose body is an h1Body without a connection. It returns nil for
// all but heads that are here whole, have lines that end in CRLF and values of
// printable ASCII, and whose body, that may be none, is framed by one
// Content-Length, or is chunked and announces no trailers: FuzzOrdinary holds
// it to that what it reads is what http.ReadResponse does. It may bring names
// of fields in b to their canonical form even so, which is the first thing that
// http.ReadResponse does to them.
func ordinary(b []byte, method string) (*http.Response, int) {
	const proto, status = "HTTP/1.1", len("HTTP/1.1 ")
	b = b[:min(len(b), mostHead)]
	if len(b) < status+4 || string(b[:status-1]) != proto || b[status-1] != ' ' || method == http.MethodHead {
		return nil, 0
	}
	code := 0
	for _, d := range b[status : status+3] {
		if d < '0' || d > '9' {
			return nil, 0
		}
		code = 10*code + int(d-'0')
	}
	if b[status+3] != ' ' || code < 200 || code == http.StatusNoContent || code == http.StatusNotModified {
		return nil, 0
	}
	first := lineEnd(b, status+4)
	if first < 0 {
		return nil, 0
	}

	var fields [mostFields]field
	n, at, length, chunked := 0, first+2, int64(-1), -1 // chunked is the field that says so
	for ; ; n++ {
		if at+1 < len(b) && b[at] == '\r' && b[at+1] == '\n' {
			at += 2
			break
		}
		name, colon := at, canonical(b, at)
		if colon < 0 || n == mostFields {
			return nil, 0
		}
		value, end := colon+1, lineEnd(b, colon+1)
		if end < 0 {
			return nil, 0
		}
		at = end + 2
		for ; value < end && b[value] == ' '; value++ {
		}
		for ; end > value && b[end-1] == ' '; end-- {
		}
		switch string(b[name:colon]) {
		case "Content-Length":
			if length >= 0 {
				return nil, 0
			}
			if length = digits(b[value:end]); length < 0 {
				return nil, 0
			}
		case "Connection": // the one word that changes nothing
			if !bytes.EqualFold(b[value:end], []byte("keep-alive")) {
				return nil, 0
			}
		case "Transfer-Encoding":
			if chunked >= 0 || !bytes.EqualFold(b[value:end], []byte("chunked")) {
				return nil, 0
			}
			chunked = n
		case "Trailer":
			return nil, 0
		}
		fields[n] = field{uint16(name), uint16(colon), uint16(value), uint16(end)}
	}
	if length < 0 == (chunked < 0) { // both are as strange as neither
		return nil, 0
	}

	// One string for all of them, and one allocation for what lives as long as
	// the answer.
	text := string(b[:at])
	a := &struct {
		resp   http.Response
		body   h1Body
		values [8]string
		framed [1]string // for resp.TransferEncoding
	}{}
	values := a.values[:]
	if n > len(values) {
		values = make([]string, n)
	}
	header := make(http.Header, n)
	for i, f := range fields[:n] {
		if i == chunked {
			continue
		}
		name := text[f.name:f.colon]
		if more := header[name]; more != nil {
			header[name] = append(more, text[f.value:f.end])
			continue
		}
		values[i] = text[f.value:f.end]
		header[name] = values[i : i+1 : i+1]
	}
	a.resp = http.Response{
		Status: text[status:first], StatusCode: code, Proto: proto, ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: http.NoBody, ContentLength: length,
	}
	switch {
	case chunked >= 0:
		a.framed[0] = "chunked"
		a.resp.TransferEncoding = a.framed[:]
		a.body.of = &a.resp
		a.resp.Body = &a.body
	case length > 0:
		a.body.left = length
		a.resp.Body = &a.body
	}
	return &a.resp, at
}

// lineEnd is where the line that at stands in has its CRLF; -1 where that is
// not here, or the line has other bytes than printable ASCII before it.
func lineEnd(b []byte, at int) int {
	for at < len(b) && ' ' <= b[at] && b[at] <= '~' {
		at++
	}
	if at+1 < len(b) && b[at] == '\r' && b[at+1] == '\n' {
		return at
	}
	return -1
}

// canonical brings the name of the field that begins at at to its canonical
// form and returns where its colon is; -1 where it has none, or is no name.
// Then it is left as it is: http.ReadResponse spares what it takes for half a
// name.
func canonical(b []byte, at int) int {
	colon := at
	for ; colon < len(b) && b[colon] != ':'; colon++ {
		if c := b[colon]; ('a' > c || c > 'z') && ('A' > c || c > 'Z') && ('0' > c || c > '9') && c != '-' && c != '_' {
			return -1
		}
	}
	if colon == at || colon == len(b) {
		return -1
	}
	upper := true
	for i, c := range b[at:colon] {
		switch {
		case upper && 'a' <= c && c <= 'z':
			b[at+i] = c - 'a' + 'A'
		case !upper && 'A' <= c && c <= 'Z':
			b[at+i] = c - 'A' + 'a'
		}
		upper = c == '-'
	}
	return colon
}

// digits is the number that b is in decimal, of at most 18 digits; -1 where it
// is none.
func digits(b []byte) (n int64) {
	if len(b) == 0 || len(b) > 18 {
		return -1
	}
	for _, d := range b {
		if d < '0' || d > '9' {
			return -1
		}
		n = 10*n + int64(d-'0')
	}
	return n
}
