package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
)

// patience bounds waits that only a failing test sits out. A busy machine may
// take long over what takes no time.
const patience = time.Minute

// hopPlane returns a plane with one upstream.
func hopPlane(tb testing.TB, url string, change ...func(*httpclient.UpstreamConfig)) *plane {
	tb.Helper()
	return hopPlaneBy(tb, url, true, change...)
}

// hopPlaneBy is hopPlane by Remora's own HTTP/1.1 client, or by http.Transport.
func hopPlaneBy(tb testing.TB, url string, own bool, change ...func(*httpclient.UpstreamConfig)) *plane {
	tb.Helper()
	c := httpclient.DefaultTransportConfig()
	c.ProxyFromEnvironment = !own // never used for loopback addresses
	c.PlainIdleTimeout = patience // it must not decide which connection a request takes
	up := httpclient.UpstreamConfig{Name: "up", URL: url, Paths: []string{"/"}}
	for _, f := range change {
		f(&up)
	}
	p, err := openPlane([]httpclient.UpstreamConfig{up}, c, DefaultStreamConfig())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.router.CloseIdle)
	return p
}

// trusting makes an upstream trust the certificate of server, if it has one.
func trusting(t *testing.T, server *httptest.Server) func(*httpclient.UpstreamConfig) {
	return func(c *httpclient.UpstreamConfig) {
		if cert := server.Certificate(); cert != nil {
			c.CAFile = filepath.Join(t.TempDir(), "upstream.pem")
			block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
			if err := os.WriteFile(c.CAFile, block, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// hop is the plainest use of a plane: bodies in memory, or streamed.
type hop struct {
	p      *plane
	stream bool
	sink   func([]byte)
	done   func(relayed)
}

func (h hop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	up := h.p.choose(r)
	if isUpgrade(r) {
		h.finish(h.p.upgrade(w, r, up, listener.Tunnel))
		return
	}
	body := httpclient.StreamBody(h.p.requestBody(w, r), r.ContentLength)
	if !h.stream {
		b, err := io.ReadAll(h.p.requestBody(w, r))
		if err != nil {
			failed, tell := problemFor(r, up, err)
			if tell {
				failed.Write(w)
			}
			h.finish(relayed{Status: failed.Status, Failed: failedClient})
			return
		}
		body = httpclient.NewBody(nil, b[:len(b)/2], b[len(b)/2:])
	}
	resp, err := up.RoundTrip(w, r, body)
	if err != nil {
		if failed, tell := problemFor(r, up, err); tell {
			failed.Write(w)
		}
		return
	}
	out := h.p.relay(w, r, resp, nil, h.sink)
	h.finish(out)
	out.abort()
}

func (h hop) finish(r relayed) {
	if h.done != nil {
		h.done(r)
	}
}

// hopServe runs a door until the test ends and returns its address.
func hopServe(tb testing.TB, h http.Handler, set ...func(*listener.Config)) string {
	tb.Helper()
	cfg := listener.DefaultConfig()
	cfg.Listen, cfg.Drain = "127.0.0.1:0", time.Second
	cfg.HeaderTimeout = patience // a loaded machine must not decide these tests
	for _, f := range set {
		f(&cfg)
	}
	s := listener.New(h, cfg, nil)
	if err := s.Listen(); err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	tb.Cleanup(func() {
		cancel()
		<-done
	})
	return s.Addr().String()
}

// canned is an upstream that records what it reads and answers with fixed
// bytes.
type canned struct {
	addr     string
	requests chan *recordedRequest
}

type recordedRequest struct {
	Line    string
	Header  http.Header
	Host    string
	Body    string
	Trailer http.Header
	Framing string // length or chunked, "" where there is no body
}

// newCanned answers the request to each path (the last segment's name) with
// answers[name], else with a plain 200.
func newCanned(t *testing.T, answers map[string]string) *canned {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &canned{addr: l.Addr().String(), requests: make(chan *recordedRequest, 16)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn, answers)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return c
}

func (c *canned) serve(conn net.Conn, answers map[string]string) {
	defer conn.Close()
	br := bufio.NewReader(conn)
	for {
		line, err := peekLine(br)
		if err != nil {
			return
		}
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		rec := &recordedRequest{Line: line, Header: r.Header, Host: r.Host, Body: string(body), Trailer: r.Trailer}
		switch {
		case len(r.TransferEncoding) > 0:
			rec.Framing = "chunked"
		case r.Header.Get("Content-Length") != "":
			rec.Framing = "length"
		}
		c.requests <- rec
		answer, ok := answers[r.URL.Path]
		if !ok {
			answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\nok"
		}
		if r.Method == http.MethodHead {
			answer, _, _ = strings.Cut(answer, "\r\n\r\n")
			answer += "\r\n\r\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil || !ok && r.Close {
			return
		}
		if strings.HasSuffix(r.URL.Path, "/close") {
			return
		}
	}
}

// peekLine returns the request line without taking it.
func peekLine(br *bufio.Reader) (string, error) {
	for n := 1; ; n++ {
		b, err := br.Peek(n)
		if err != nil {
			return "", err
		}
		if b[n-1] == '\n' {
			return strings.TrimRight(string(b), "\r\n"), nil
		}
	}
}

// exchangeRaw sends raw to addr and reads one response.
func exchangeRaw(t *testing.T, addr, raw string) (*http.Response, string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	br := bufio.NewReader(conn)
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	for err == nil && resp.StatusCode == http.StatusContinue {
		resp, err = http.ReadResponse(br, &http.Request{Method: method})
	}
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// Whatever a client sends, the upstream is sent the same as without the hop.
func TestRequestsPassUnchanged(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 20_000)
	tests := []struct{ name, raw string }{
		{"get", "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"post", "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nUser-Agent: a\r\n\r\nabc"},
		{"no user agent, no accept", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"large", fmt.Sprintf("POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(big), big)},
		{"content length 0", "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"},
		{"expect", "POST /v1/chat HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"},
		{"head", "HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"options", "OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\nAccess-Control-Request-Method: POST\r\n\r\n"},
		{"options *", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"delete with a body", "DELETE /v1/files/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"},
		{"get with a body", "GET /v1/search HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"},
		{"odd method", "PURGE /x HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"repeated and empty headers", "GET / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nX-A: 2, 3\r\nX-Empty:\r\nX-A: 1\r\n\r\n"},
		{"odd casing and spaces", "GET / HTTP/1.1\r\nhost: x\r\nx-aPi-kEY:   k  \r\nAUTHORIZATION: Bearer  k\r\n\r\n"},
		{"high bytes in a value", "GET / HTTP/1.1\r\nHost: x\r\nX-Name: J\xfcrgen \xe2\x82\xac\r\n\r\n"},
		{"forwarded", "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Host: h\r\nForwarded: for=a\r\nVia: 1.1 a\r\n\r\n"},
		{"accept encoding", "GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: zstd, br\r\n\r\n"},
		{"content encoding", "POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x00\xff"},
		{"escaped path", "GET /a%2Fb//c;d=1/%41%20/%C3%BC HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"raw characters in the path", "GET /a|b^c\"d[e]{f} HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"double slash", "GET //v1//models HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"query without =", "GET /v1/models?beta&a=1;b=2&a=%zz HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"bare ?", "GET /v1/models? HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"content type without a body", "POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"},
	}
	up := newCanned(t, nil)
	for _, stream := range []bool{false, true} {
		door := hopServe(t, hop{p: hopPlane(t, "http://"+up.addr), stream: stream})
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s/stream=%v", tt.name, stream), func(t *testing.T) {
				if _, _, err := exchangeRaw(t, up.addr, tt.raw); err != nil {
					t.Fatal(err)
				}
				want := <-up.requests
				want.Host = up.addr
				if _, _, err := exchangeRaw(t, door, tt.raw); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, <-up.requests); diff != "" {
					t.Errorf("(-direct +through the hop)\n%s", diff)
				}
			})
		}
	}
}

// A chunked body may leave with a length or in chunks, but whole. With trailers
// it leaves in chunks.
func TestChunkedRequests(t *testing.T) {
	up := newCanned(t, nil)
	for _, stream := range []bool{false, true} {
		door := hopServe(t, hop{p: hopPlane(t, "http://"+up.addr), stream: stream})
		head := "POST /v1/chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
		if _, _, err := exchangeRaw(t, door, head+"\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		got := <-up.requests
		if got.Body != "abcde" {
			t.Errorf("stream=%v: got body %q, want abcde", stream, got.Body)
		}
		if _, _, err := exchangeRaw(t, door, head+"TE: trailers\r\nTrailer: X-Sum, X-Other\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		got = <-up.requests
		if got.Body != "abc" || got.Framing != "chunked" || got.Trailer.Get("X-Sum") != "7" || got.Header.Get("Te") != "trailers" {
			t.Errorf("stream=%v: got %+v, want the body in chunks and the trailer", stream, got)
		}
		if _, _, err := exchangeRaw(t, door, head+"\r\n0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got = <-up.requests; got.Body != "" {
			t.Errorf("stream=%v: got body %q, want none", stream, got.Body)
		}
	}
}

func TestUpstreamIsNotTheClientsToChoose(t *testing.T) {
	up := newCanned(t, nil)
	evil := newCanned(t, nil)
	door := hopServe(t, hop{p: hopPlane(t, "http://"+up.addr)})
	for _, raw := range []string{
		"GET /a HTTP/1.1\r\nHost: " + evil.addr + "\r\n\r\n",
		"GET http://" + evil.addr + "/a HTTP/1.1\r\nHost: " + evil.addr + "\r\n\r\n",
		"GET http://" + evil.addr + "/a HTTP/1.1\r\nHost: x\r\nX-Forwarded-Host: " + evil.addr + "\r\n\r\n",
		"GET //" + evil.addr + "/a HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if _, _, err := exchangeRaw(t, door, raw); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-up.requests:
			if got.Host != up.addr || !strings.HasSuffix(got.Line, "/a HTTP/1.1") {
				t.Errorf("%q: got %+v", raw, got)
			}
		case <-evil.requests:
			t.Errorf("%q: led to another host", raw)
		}
	}
	resp, _, err := exchangeRaw(t, door, "CONNECT "+evil.addr+" HTTP/1.1\r\nHost: "+evil.addr+"\r\n\r\n")
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("CONNECT: got %v, %v, want a 400", resp, err)
	}
}

// Whatever an upstream answers, the client is answered the same as without the
// hop.
func TestResponsesPassUnchanged(t *testing.T) {
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	_, _ = zw.Write([]byte("hello hello hello"))
	zw.Close()
	big := strings.Repeat("0123456789abcdef", 20_000)
	answers := map[string]string{
		"/length":     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"/no-headers": "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>no type<>",
		"/chunked":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
		"/trailers":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Two\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\nX-Two: 8\r\n\r\n",
		"/unannounced": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" +
			"X-Late: 1\r\n\r\n",
		"/gzip": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			zipped.Len(), zipped.String()),
		"/big":       fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: text/plain\r\n\r\n%s", len(big), big),
		"/big-chunk": fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(big), big),
		"/204":       "HTTP/1.1 204 No Content\r\nX-A: 1\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
		"/304":       "HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\n\r\n",
		"/redirect":  "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/elsewhere\r\nContent-Length: 0\r\n\r\n",
		"/401":       "HTTP/1.1 401 Unauthorized\r\nWww-Authenticate: Bearer\r\nContent-Length: 5\r\nContent-Type: application/json\r\n\r\n{\"e\":",
		"/429":       "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nX-Ratelimit-Remaining: 0\r\nContent-Length: 2\r\n\r\n{}",
		"/529":       "HTTP/1.1 529 Overloaded\r\nContent-Length: 2\r\n\r\n{}",
		"/cookies":   "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n",
		"/close":     "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nuntil the end",
	}
	up := newCanned(t, answers)
	door := hopServe(t, hop{p: hopPlane(t, "http://"+up.addr)})
	for path := range answers {
		for _, method := range []string{"GET", "POST", "HEAD"} {
			if method == "HEAD" && path == "/trailers" {
				continue // none come, and net/http shows the announcement elsewhere
			}
			t.Run(method+path, func(t *testing.T) {
				raw := method + " " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
				want, wantBody, err := exchangeRaw(t, up.addr, raw)
				if err != nil {
					t.Fatal(err)
				}
				<-up.requests
				got, gotBody, err := exchangeRaw(t, door, raw)
				if err != nil {
					t.Fatal(err)
				}
				<-up.requests
				want.Header.Del("Connection")
				if got.StatusCode != want.StatusCode || gotBody != wantBody {
					t.Errorf("got %d and %d bytes, want %d and %d", got.StatusCode, len(gotBody), want.StatusCode, len(wantBody))
				}
				if diff := cmp.Diff(want.Header, got.Header); diff != "" {
					t.Errorf("headers (-direct +through the hop)\n%s", diff)
				}
				if diff := cmp.Diff(want.Trailer, got.Trailer); diff != "" {
					t.Errorf("trailers (-direct +through the hop)\n%s", diff)
				}
			})
		}
	}
}

func TestHeadKeepsItsLength(t *testing.T) {
	up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "123") }))
	door := hopServe(t, hop{p: hopPlane(t, up)})
	resp, err := http.Head("http://" + door + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.ContentLength != 123 {
		t.Errorf("Content-Length: got %d, want 123", resp.ContentLength)
	}
}

func TestInformationalResponses(t *testing.T) {
	for name, answer := range map[string]string{
		"hints and progress": "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Remora-Status: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" +
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Final: 1\r\n\r\nok",
	} {
		t.Run(name, func(t *testing.T) {
			up := newCanned(t, map[string]string{"/": answer})
			p := hopPlane(t, "http://"+up.addr)
			door := hopServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Own", "1") // what the door has to say belongs to the final response
				hop{p: p}.ServeHTTP(w, r)
			}))
			conn, err := net.Dial("tcp", door)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			br := bufio.NewReader(conn)
			var got []string
			for {
				resp, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d link=%s own=%s", resp.StatusCode, resp.Header.Get("Link"), resp.Header.Get("X-Own")))
				if resp.StatusCode >= 200 {
					if b, _ := io.ReadAll(resp.Body); string(b) != "ok" || resp.Header.Get("X-Final") != "1" {
						t.Errorf("got %q, %v", b, resp.Header)
					}
					break
				}
			}
			if diff := cmp.Diff([]string{"103 link=</a> own=", "102 link= own=", "200 link= own=1"}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// HTTP/2 without TLS comes in, HTTP/2 with TLS goes out.
func TestHTTP2(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-Proto", r.Proto)
		_, _ = fmt.Fprintf(w, "%s %s %s %q", r.Method, r.RequestURI, b, r.Header["User-Agent"])
		w.Header().Set("X-Sum", "7")
	}))
	up.EnableHTTP2 = true
	up.StartTLS()
	defer up.Close()
	for _, stream := range []bool{false, true} {
		p := hopPlane(t, up.URL, trusting(t, up))
		door := hopServe(t, hop{p: p, stream: stream})

		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
		req, err := http.NewRequest(http.MethodPost, "http://"+door+"/v1/a%2Fb?x", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header["User-Agent"] = nil
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(b), "POST /v1/a%2Fb?x body []"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if resp.ProtoMajor != 2 || resp.Header.Get("X-Proto") != "HTTP/2.0" || resp.Trailer.Get("X-Sum") != "7" {
			t.Errorf("got in %s, out %s, trailer %v", resp.Proto, resp.Header.Get("X-Proto"), resp.Trailer)
		}
		client.CloseIdleConnections()
	}
}

// TestHTTP2GoAway: an upstream that wants the connection ended in the midst of
// a stream gets no more requests on it, and the stream comes whole.
func TestHTTP2GoAway(t *testing.T) {
	goOn := make(chan struct{})
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-From", r.RemoteAddr)
		if r.URL.Path == "/second" {
			return
		}
		w.Header().Set("Connection", "close") // by which net/http sends GOAWAY
		_, _ = io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-goOn
		_, _ = io.WriteString(w, "data: 2\n\n")
	}))
	up.EnableHTTP2 = true
	up.StartTLS()
	defer up.Close()
	for _, stream := range []bool{false, true} {
		p := hopPlane(t, up.URL, trusting(t, up))
		door := hopServe(t, hop{p: p, stream: stream})
		first, err := http.Get("http://" + door + "/first")
		if err != nil {
			t.Fatal(err)
		}
		event := make([]byte, len("data: 1\n\n"))
		if _, err := io.ReadFull(first.Body, event); err != nil {
			t.Fatal(err)
		}
		// GOAWAY may be under way still: a request that the old connection
		// takes is answered there.
		elsewhere := false
		for deadline := time.Now().Add(patience); !elsewhere && time.Now().Before(deadline); {
			second, err := http.Get("http://" + door + "/second")
			if err != nil {
				t.Fatal(err)
			}
			second.Body.Close()
			if second.StatusCode != http.StatusOK {
				t.Fatalf("another request: status %d", second.StatusCode)
			}
			elsewhere = second.Header.Get("X-From") != first.Header.Get("X-From")
		}
		if !elsewhere {
			t.Error("requests still take the connection that is to end")
		}
		goOn <- struct{}{}
		rest, err := io.ReadAll(first.Body)
		first.Body.Close()
		if got := string(event) + string(rest); err != nil || got != "data: 1\n\ndata: 2\n\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// hopListen serves h on a loopback port until the test ends, and returns its
// URL.
func hopListen(tb testing.TB, h http.Handler) string {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

func mustWrite(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); err != nil || n != len(s) {
		t.Fatalf("write: got %d, %v, want %d", n, err, len(s))
	}
}
