package httpclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
)

// readResponse is http.ReadResponse, at a third of its cost for an ordinary
// response. All others are left to net/http, whole.
func readResponse(br *bufio.Reader, in *http.Request) (*http.Response, error) {
	if _, err := br.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	b, _ := br.Peek(br.Buffered())
	if resp, n := ordinary(b, in.Method); resp != nil {
		_, _ = br.Discard(n) // they are buffered
		return resp, nil
	}
	return http.ReadResponse(br, in)
}

// field is the position of a header field in a head.
type field struct{ name, colon, value, end uint16 }

// maxOrdinaryHead is the maximum size of an ordinary head, in bytes: what is
// buffered at once.
const maxOrdinaryHead = readBufferSize

// maxOrdinaryFields is the maximum number of fields of an ordinary head.
const maxOrdinaryFields = 32

// ordinary reads the head at the start of b. It returns the response, whose
// body is a responseBody without a connection, and the head's length. It
// returns nil unless the head is complete, its lines end in CRLF, its values
// are printable ASCII, and its body is empty, framed by one Content-Length, or
// chunked without announced trailers. FuzzOrdinary compares the result with
// http.ReadResponse. In any case ordinary may bring names of fields in b to
// their canonical form, which is the first thing that http.ReadResponse does.
func ordinary(b []byte, method string) (*http.Response, int) {
	const proto, status = "HTTP/1.1", len("HTTP/1.1 ")
	b = b[:min(len(b), maxOrdinaryHead)]
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

	var fields [maxOrdinaryFields]field
	n, at, length, chunked := 0, first+2, int64(-1), -1 // chunked is the field's number
	for ; ; n++ {
		if at+1 < len(b) && b[at] == '\r' && b[at+1] == '\n' {
			at += 2
			break
		}
		name, colon := at, canonical(b, at)
		if colon < 0 || n == maxOrdinaryFields {
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

	// One string for all of them: one allocation for what lives as long as the
	// answer.
	text := string(b[:at])
	a := &struct {
		resp   http.Response
		body   responseBody
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

// lineEnd returns the position of the CRLF of the line at at, or -1 if it is
// not here or other bytes than printable ASCII come first.
func lineEnd(b []byte, at int) int {
	for at < len(b) && ' ' <= b[at] && b[at] <= '~' {
		at++
	}
	if at+1 < len(b) && b[at] == '\r' && b[at+1] == '\n' {
		return at
	}
	return -1
}

// canonical brings the name of the field at at to its canonical form and
// returns the position of its colon, or -1 if it has none or is not a name.
// Then it is left unchanged, because http.ReadResponse does not change half a
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

// digits returns the decimal number b of at most 18 digits, or -1.
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
