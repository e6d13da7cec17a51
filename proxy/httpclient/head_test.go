package httpclient

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readOutcome is what a reader of responses makes of one.
type readOutcome struct {
	Failed                    bool
	Status, Proto             string
	Code, Major, Minor        int
	Header, Trailer           http.Header
	Encoding                  []string
	Length                    int64
	Close, None, Unfinished   bool
	Body, BodyFailed, Surplus string
}

// readWith reads raw with own reader or with net/http's.
func readWith(own bool, raw, method string, chunk int) readOutcome {
	src := io.Reader(strings.NewReader(raw))
	if chunk == 1 {
		src = iotest.OneByteReader(src)
	}
	c := &conn{}
	c.br = *bufio.NewReaderSize(src, readBufferSize)
	in := &http.Request{Method: method}
	read := http.ReadResponse
	if own {
		read = readResponse
	}
	resp, err := read(&c.br, in)
	if err != nil {
		return readOutcome{Failed: true, Unfinished: errors.Is(err, io.ErrUnexpectedEOF)}
	}
	dropInventedCacheControl(resp.Header, raw)
	out := readOutcome{
		Status: resp.Status, Proto: resp.Proto, Code: resp.StatusCode, Major: resp.ProtoMajor, Minor: resp.ProtoMinor,
		Header: resp.Header, Encoding: resp.TransferEncoding, Length: resp.ContentLength, Close: resp.Close, None: resp.Body == http.NoBody,
	}
	body := io.Reader(resp.Body)
	if b, ok := body.(*responseBody); ok {
		b.c = c
		body = readerFunc(b.read)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		out.BodyFailed = strings.TrimPrefix(err.Error(), "http: ")
	}
	out.Body, out.Trailer = string(b), resp.Trailer
	rest, _ := io.ReadAll(&c.br)
	out.Surplus = string(rest)
	return out
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// ordinaryResponses are some that are read here, most of them barely.
var ordinaryResponses = []string{
	h1OK,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nPragma: no-cache\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length:  5 \r\nDATE: x\r\n\r\nhello and more",
	"HTTP/1.1 404 Not  Found \r\nSet-Cookie: a\r\nset-cookie: b\r\nX_y-Z9: \r\nContent-Length: 000\r\n\r\n",
	"HTTP/1.1 999 \r\nContent-Length: 3\r\nConnection: Keep-Alive\r\n\r\nab",
	"HTTP/1.1 205 Reset\r\nContent-Length: 1\r\nKeep-Alive: timeout=5\r\n\r\nab",
	"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", maxOrdinaryFields-1) + "Content-Length: 1\r\n\r\nab",
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding:  Chunked \r\nX: y\r\n\r\n5\r\nhello\r\n0A;x=y\r\n and more.\r\n0\r\n\r\nHTTP/1.1",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-Sum: 1\r\nX-Sum: 2\r\n\r\nmore",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum : 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: " + strings.Repeat("1", readBufferSize) + "\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
}

// extraordinaryResponses are none of those, by a little.
var extraordinaryResponses = []string{
	"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 +20 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\rx\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: a\tb\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: \xe9\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: a\x00b\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx~y: a\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX y: a\r\n\r\nok",
	"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-A : a\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n: a\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: a\r\n \r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000000\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, close\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTrailer: X\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: \r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: a\r\n",
	"HTTP/1.1 200 OK\r\nX: a\r\n\r\n",
	"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", maxOrdinaryFields) + "Content-Length: 1\r\n\r\nab",
}

func TestOrdinary(t *testing.T) {
	for _, raw := range ordinaryResponses {
		if resp, _ := ordinary([]byte(raw), http.MethodPost); resp == nil {
			t.Errorf("left to net/http: %.200q", raw)
		}
		if resp, _ := ordinary([]byte(raw), http.MethodHead); resp != nil {
			t.Errorf("read as the answer to HEAD: %.200q", raw)
		}
	}
	for _, raw := range extraordinaryResponses {
		if resp, _ := ordinary([]byte(raw), http.MethodPost); resp != nil {
			t.Errorf("taken for ordinary: %.200q", raw)
		}
	}
}

// Who keeps the header of an answer must not see another's: what is appended to
// a field stays in it.
func TestOrdinaryFieldsStayApart(t *testing.T) {
	resp, _ := ordinary([]byte("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nContent-Length: 0\r\n\r\n"), http.MethodGet)
	resp.Header.Add("A", "3")
	if got := fmt.Sprint(resp.Header); got != "map[A:[1 3] B:[2] Content-Length:[0]]" {
		t.Errorf("got %s", got)
	}
}

// FuzzOrdinary holds readResponse to http.ReadResponse, whichever of the two
// reads a response, and however it comes.
func FuzzOrdinary(f *testing.F) {
	for _, list := range [][]string{rawResponses, ordinaryResponses, extraordinaryResponses} {
		for _, raw := range list {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				f.Add(raw, method)
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw, method string) {
		for chunk := range 2 {
			got, want := readWith(true, raw, method, chunk), readWith(false, raw, method, chunk)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%.2000q, method %q (-net/http +own):\n%s", raw, method, diff)
			}
		}
	})
}

// dropInventedCacheControl deletes the Cache-Control that net/http adds to a
// head with "Pragma: no-cache" and none of its own in raw.
func dropInventedCacheControl(h http.Header, raw string) {
	if p := h["Pragma"]; len(p) > 0 && p[0] == "no-cache" && !strings.Contains(strings.ToLower(raw), "cache-control") {
		delete(h, "Cache-Control")
	}
}
