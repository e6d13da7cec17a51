package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// requestOutcome is what a reader of requests makes of one.
type requestOutcome struct {
	Method, URI, Path, RawPath, Query, Proto, Host string
	Major, Minor                                   int
	Header                                         http.Header
	Length                                         int64
	None, Close                                    bool
	Body, Rest                                     string
}

// readRequestHere is what ordinaryRequest makes of raw; ok is false where it leaves that to net/http.
func readRequestHere(raw string) (out requestOutcome, ok bool) {
	b := []byte(raw)
	a, n := ordinaryRequest(b, (&http.Request{RemoteAddr: "r"}).WithContext(context.Background()))
	if a == nil {
		return out, false
	}
	out = outcomeOf(&a.request)
	rest := raw[n:]
	body := min(int(a.body.left), len(rest))
	out.Body, out.Rest, out.None = rest[:body], rest[body:], a.body.left == 0
	return out, true
}

func outcomeOf(r *http.Request) requestOutcome {
	return requestOutcome{
		Method: r.Method, URI: r.RequestURI, Path: r.URL.Path, RawPath: r.URL.RawPath, Query: r.URL.RawQuery, Proto: r.Proto, Host: r.Host,
		Major: r.ProtoMajor, Minor: r.ProtoMinor, Header: r.Header, Length: r.ContentLength, Close: r.Close,
	}
}

// readRequestThere is what net/http's server makes of raw, as far as it depends on the bytes.
func readRequestThere(raw string) (out requestOutcome, ok bool) {
	br := bufio.NewReader(strings.NewReader(raw))
	r, err := http.ReadRequest(br)
	if err != nil {
		return out, false
	}
	if len(r.Header["Host"]) > 1 || r.Host == "" {
		return out, false
	}
	delete(r.Header, "Host")
	unforge(r.Header, raw)
	out = outcomeOf(r)
	body, _ := io.ReadAll(r.Body)
	rest, _ := io.ReadAll(br)
	out.Body, out.Rest, out.None = string(body), string(rest), r.Body == http.NoBody
	return out, true
}

// unforge takes out what net/http adds to a head that has Pragma, and nobody has sent.
func unforge(h http.Header, raw string) {
	if p := h["Pragma"]; len(p) > 0 && p[0] == "no-cache" && !strings.Contains(strings.ToLower(raw), "cache-control") {
		delete(h, "Cache-Control")
	}
}

// ordinaryRequests are some that a door serves itself, most of them barely.
var ordinaryRequests = []string{
	"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:8787\r\nContent-Length: 2\r\n\r\n{}POST",
	"GET / HTTP/1.1\r\nHost: [::1]:1\r\n\r\n",
	"GET /a%20b?c=d&e HTTP/1.1\r\nhost: x\r\naccept:  */* \r\nAccept: b\r\n\r\nGET",
	"POST //x/y HTTP/1.1\r\nHost: a.b\r\nConnection: Keep-Alive\r\n\r\n",
	"POST /x?y#z HTTP/1.1\r\nHost: a.b\r\nX_y-9: \r\nTe: trailers\r\nContent-Length: 007\r\n\r\nabcdefgh",
	"POST /x HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n",
	"GET /" + strings.Repeat("x", 3000) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nab",
}

// extraordinaryRequests are none of those, by a little.
var extraordinaryRequests = []string{
	"PUT /x HTTP/1.1\r\nHost: a\r\n\r\n",
	"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n",
	"post /x HTTP/1.1\r\nHost: a\r\n\r\n",
	"\r\nPOST /x HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST  /x HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /x  HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /x HTTP/1.0\r\nHost: a\r\n\r\n",
	"POST /x HTTP/1.1\nHost: a\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\n\r\n",
	"POST x HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST http://b/x HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /x\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST * HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /x HTTP/1.1\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: \r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a/b\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a b\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nX: a\tb\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nX: a\x00\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nX~: a\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
	"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
	"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na",
	"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\na",
	"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\na",
	"POST /x HTTP/1.1\r\nHost: a\r\nTrailer: X\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nX: a\r\n",
	"GET /x HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-A: b\r\n", mostFields) + "X-B: c\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}

func TestOrdinaryRequest(t *testing.T) {
	for _, raw := range ordinaryRequests {
		got, ok := readRequestHere(raw)
		want, sound := readRequestThere(raw)
		if !ok || !sound {
			t.Errorf("left to net/http: %v, read there: %v: %.200q", !ok, sound, raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.200q (-net/http +here):\n%s", raw, diff)
		}
	}
	for _, raw := range extraordinaryRequests {
		if _, ok := readRequestHere(raw); ok {
			t.Errorf("taken for ordinary: %.200q", raw)
		}
	}
}

// What a door reads itself, net/http reads alike.
func FuzzOrdinaryRequest(f *testing.F) {
	for _, raw := range ordinaryRequests {
		f.Add(raw)
	}
	for _, raw := range extraordinaryRequests {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, ok := readRequestHere(raw)
		if !ok {
			return
		}
		want, sound := readRequestThere(raw)
		if !sound {
			t.Fatalf("net/http refuses %q", raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-net/http +here):\n%s", raw, diff)
		}
	})
}

// Pragma goes by, in both directions, without the Cache-Control that net/http's readers would add.
func TestPragmaAddsNothing(t *testing.T) {
	head := func(br *bufio.Reader) string {
		var b strings.Builder
		for {
			line, err := br.ReadString('\n')
			if b.WriteString(line); err != nil || line == "\r\n" {
				return b.String()
			}
		}
	}
	heads := make(chan string, 1)
	addr := h1Serve(t, func(_ int, conn net.Conn, br *bufio.Reader) {
		heads <- head(br)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\nok")
	})
	r := newRig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = "http://" + addr })
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: "+addr+"\r\nPragma: no-cache\r\n\r\n")
	r.posted++
	answer := head(bufio.NewReader(conn))
	for _, got := range []string{<-heads, answer} {
		if !strings.Contains(got, "Pragma: no-cache\r\n") || strings.Contains(got, "Cache-Control") {
			t.Errorf("got %q", got)
		}
	}
}
