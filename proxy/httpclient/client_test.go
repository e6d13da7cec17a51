package httpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// h1Upstream returns an upstream over Remora's own client, or over
// http.Transport.
func h1Upstream(tb testing.TB, addr string, own bool, change func(*TransportConfig)) *Upstream {
	tb.Helper()
	if own && !ownClient {
		tb.Skip("http.Transport speaks to plain upstreams here")
	}
	c := DefaultTransportConfig()
	c.PlainIdleTimeout = patience // it must not decide which connection a request takes
	if change != nil {
		change(&c)
	}
	up, err := openUpstream(UpstreamConfig{Name: "up", URL: "http://" + addr, Paths: []string{"/"}}, c)
	if err != nil {
		tb.Fatal(err)
	}
	if !own {
		up.plain = nil
	}
	tb.Cleanup(up.closeIdle)
	return up
}

// h1Incoming is a request as a door has it.
func h1Incoming(tb testing.TB, raw string) (*http.Request, Body) {
	tb.Helper()
	in, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		tb.Fatal(err)
	}
	b, err := io.ReadAll(in.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return in, NewBody(nil, b[:len(b)/2], b[len(b)/2:])
}

// h1Do sends raw through p and returns the status and the body.
func h1Do(tb testing.TB, up *Upstream, raw string) (int, string, error) {
	tb.Helper()
	in, body := h1Incoming(tb, raw)
	return h1Send(up, in, body)
}

func h1Send(up *Upstream, in *http.Request, body Body) (int, string, error) {
	resp, err := up.RoundTrip(httptest.NewRecorder(), in, body)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func h1Idle(up *Upstream) []*conn {
	pool := &up.plain.idle
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return append([]*conn(nil), pool.idle...)
}

const (
	h1Get  = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
	h1Post = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
	h1OK   = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
)

// rawResponses are answers of all kinds, fair and foul.
var rawResponses = []string{
	h1OK,
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\n\r\nuntil the end",
	"HTTP/1.0 200 OK\r\n\r\nold",
	"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nold",
	"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n3\r\nabc\r\n0\r\nX-A: 1\r\nX-B: 2\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" + strings.Repeat("X-Long: trailer\r\n", 400) + "\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nabcde",
	"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabcde",
	"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nabcde",
	"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nabcde",
	"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more than that",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + h1OK,
	"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
	"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\n" + h1OK,
	"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + h1OK,
	"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
	"HTTP/1.1 099 Odd\r\n\r\n",
	"HTTP/1.1 999 Odd\r\nContent-Length: 1\r\n\r\nx",
	"HTTP/1.1 20 OK\r\n\r\n",
	"HTTP/1.1 abc OK\r\n\r\n",
	"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
	"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/9.9.9 200 OK\r\n\r\n",
	"ICY 200 OK\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"\x15\x03\x01\x00\x02\x02\x46",
	"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
	"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\n Leading: a\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
	"HTTP/1.1 200 OK\r\nx-lower: \xff\xfe\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nConnection: close, x-a\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nX-Big: " + strings.Repeat("b", 100<<10) + "\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nX-Too-Big: " + strings.Repeat("b", maxHead) + "\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("0123456789", 30_000),
	"\r\n\r\n" + h1OK,
	"",
}

// h1Outcome is what can be seen of an answer.
type h1Outcome struct {
	Failed     bool
	Status     int
	Length     int64
	Header     http.Header
	Trailer    http.Header
	Body       string
	BodyFailed bool
	Hints      []string
}

// hints notes informational responses.
type hints struct {
	http.ResponseWriter
	codes []string
}

func (h *hints) WriteHeader(code int) {
	h.codes = append(h.codes, fmt.Sprint(code, h.Header()))
}

func h1Outcomes(tb testing.TB, up *Upstream, method string) h1Outcome {
	in, body := h1Incoming(tb, method+" /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w := &hints{ResponseWriter: httptest.NewRecorder()}
	resp, err := up.RoundTrip(w, in.WithContext(ctx), body)
	if err != nil {
		if ctx.Err() != nil {
			tb.Errorf("%s: no answer in time", method)
		}
		return h1Outcome{Failed: true}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return h1Outcome{false, resp.StatusCode, resp.ContentLength, resp.Header, resp.Trailer, string(b), err != nil, w.codes}
}

// compareH1 answers with raw and a closed connection, and wants the same
// outcome by both clients.
func compareH1(tb testing.TB, raw, method string) {
	var answer atomic.Value
	answer.Store(raw)
	addr := proxytest.ServeConns(tb, func(_ int, conn net.Conn, br *bufio.Reader) {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(conn, raw)
	})
	want := h1Outcomes(tb, h1Upstream(tb, addr, false, nil), method)
	got := h1Outcomes(tb, h1Upstream(tb, addr, true, nil), method)
	dropInventedCacheControl(want.Header, raw)
	dropInventedCacheControl(got.Header, raw)
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s %.200q (-http.Transport +own)\n%s", method, raw, diff)
	}
}

// Whatever an upstream answers, the own client takes it as http.Transport does.
func TestClientTakesAnswersAsTransportDoes(t *testing.T) {
	for _, raw := range rawResponses {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			compareH1(t, raw, method)
		}
	}
	for _, raw := range []string{rawResponses[7], rawResponses[31]} { // cut off everywhere
		for i := range raw {
			compareH1(t, raw[:i], "POST")
		}
	}
}

func FuzzClientResponse(f *testing.F) {
	for _, raw := range rawResponses {
		if len(raw) < 1<<10 {
			f.Add(raw, "POST")
		}
	}
	f.Fuzz(func(t *testing.T, raw, method string) {
		if len(raw) > 64<<10 {
			t.Skip()
		}
		if method != "HEAD" {
			method = "POST"
		}
		compareH1(t, raw, method)
	})
}

// Whatever goes out, goes out byte for byte as http.Transport would send it.
func TestClientSendsHeadsAsTransportDoes(t *testing.T) {
	heads := []string{
		h1Get, h1Post,
		"GET /a?b=%20&&c HTTP/1.1\r\nHost: x\r\nUser-Agent:  me \r\nx-b: 2\r\nX-A: 1\r\nx-a: 0\r\nX-Empty:\r\nAccept: */*\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: x\r\nUser-Agent: \r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"DELETE /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"PUT /a HTTP/1.1\r\nHost: x\r\nConnection: x-gone\r\nX-Gone: 1\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Later\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\nX-Sum: 7\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("0123456789", 10_000),
	}
	for _, url := range []string{"", "[::1%25lo]:", "b\xc3\xbccher.example:"} {
		var sent [2]string
		for _, raw := range heads {
			for i, own := range []bool{false, true} {
				got := make(chan string, 1)
				addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
					var seen bytes.Buffer
					r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(br, &seen)))
					if err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
					}
					got <- seen.String()
					_, _ = io.WriteString(conn, h1OK)
				})
				up := h1Upstream(t, addr, own, nil)
				if url != "" { // another name for the same address
					named := h1Upstream(t, url+addr[strings.LastIndex(addr, ":")+1:], own, nil)
					if own {
						named.plain.addr = addr
					} else {
						named.transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
							return new(net.Dialer).DialContext(ctx, network, addr)
						}
					}
					up = named
				}
				if _, _, err := h1Do(t, up, raw); err != nil {
					t.Fatalf("%.40q: %v", raw, err)
				}
				port := addr[strings.LastIndex(addr, ":"):]
				sent[i] = strings.Replace(wait(t, got), port, ":PORT", 1)
			}
			if diff := cmp.Diff(sent[0], sent[1]); diff != "" {
				t.Errorf("(-http.Transport +own)\n%s", diff)
			}
		}
	}
}

// What HTTP/2 can carry must not break out of the request line.
func TestClientRefusesWhatBreaksOut(t *testing.T) {
	up := h1Upstream(t, "127.0.0.1:1", true, nil)
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX: " },
		func(r *http.Request) { r.Method = "" },
		func(r *http.Request) { r.URL.RawQuery = "a\r\nX: 1" },
	} {
		in, body := h1Incoming(t, h1Get)
		change(in)
		if _, _, err := h1Send(up, in, body); !errors.Is(err, ErrBadTarget) {
			t.Errorf("%q %v: got %v, want %v", in.Method, in.URL, err, ErrBadTarget)
		}
	}
}

// The upstream answers before it has read the body, and more than the socket
// takes: nobody must wait for the other.
func TestClientAnswerBeforeTheBodyIsSent(t *testing.T) {
	const size = 16 << 20
	payload := strings.Repeat("0123456789abcdef", size/16)
	for _, stream := range []bool{false, true} {
		for _, reads := range []bool{false, true} {
			t.Run(fmt.Sprintf("stream=%v/reads=%v", stream, reads), func(t *testing.T) {
				over := make(chan struct{})
				defer close(over)
				addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					if reads {
						_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, payload)
						_, _ = io.Copy(io.Discard, r.Body)
					} else {
						_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
					}
					<-over
				})
				up := h1Upstream(t, addr, true, nil)
				in, _ := h1Incoming(t, h1Get)
				in.Method = http.MethodPost
				freed := make(chan struct{})
				l := newLease(func() { close(freed) })
				body := NewBody(l, []byte(payload))
				if stream {
					body = StreamBody(io.NopCloser(strings.NewReader(payload)), size)
				}
				code, got, err := h1Send(up, in, body)
				want := 413
				if reads {
					want = 200
				}
				if err != nil || code != want || len(got) < 2 {
					t.Errorf("got %d, %d bytes, %v, want %d", code, len(got), err, want)
				}
				if n := len(h1Idle(up)); !reads && n != 0 {
					t.Errorf("%d idle connections, want that in the middle of a request closed", n)
				}
				if !stream {
					l.Release()
					wait(t, freed) // by the sender, which has ended
				}
			})
		}
	}
}

func TestClientExpectContinue(t *testing.T) {
	head := "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
	for _, tt := range []struct {
		name   string
		before string // what the upstream says to the head
		body   string // what it then gets
		code   int
	}{
		{"awaitContinue", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", "abc", 200},
		{"refused", "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", "", 417},
		{"not said", "", "abc", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan string, 1)
			began := time.Now()
			addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				// Later the body comes unasked, as from who was not heard in
				// time.
				if n := br.Buffered(); n > 0 && time.Since(began) < continueWait {
					t.Errorf("%d bytes of the body came with the head", n)
				}
				_, _ = io.WriteString(conn, tt.before)
				b := make([]byte, 3)
				n, _ := io.ReadFull(br, b)
				got <- string(b[:n])
				_, _ = io.WriteString(conn, h1OK)
			})
			up := h1Upstream(t, addr, true, nil)
			code, _, err := h1Do(t, up, head+"abc")
			if err != nil || code != tt.code {
				t.Errorf("got %d, %v, want %d", code, err, tt.code)
			}
			if b := wait(t, got); b != tt.body && (tt.code == 200 || time.Since(began) < continueWait) {
				t.Errorf("the upstream got %q, want %q", b, tt.body)
			}
		})
	}
}

// An answer to the head alone may cross with the body that nobody has asked
// for: what the upstream takes that for is not known, so nothing else goes over
// the connection.
func TestClientUnaskedBodies(t *testing.T) {
	for _, tt := range []struct {
		name, before, after string
		pooled              int
	}{
		{"nothing was said", "", "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", 0},
		{"it was awaitContinue", "HTTP/1.1 100 Continue\r\n\r\n", h1OK, 1},
		{"it was awaitContinue in the end", "", "HTTP/1.1 100 Continue\r\n\r\n" + h1OK, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				_, _ = io.WriteString(conn, tt.before)
				_, _ = io.ReadFull(br, make([]byte, 3))
				_, _ = io.WriteString(conn, tt.after)
				_, _ = br.ReadByte() // until it is closed
			})
			up := h1Upstream(t, addr, true, func(c *TransportConfig) { c.PlainIdleTimeout = time.Minute })
			if _, _, err := h1Do(t, up, "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"); err != nil {
				t.Fatal(err)
			}
			if got := len(h1Idle(up)); got != tt.pooled {
				t.Errorf("%d connections are kept, want %d", got, tt.pooled)
			}
		})
	}
}

func TestClientHeaderTimeout(t *testing.T) {
	release := make(chan struct{})
	addr := proxytest.ServeConns(t, proxytest.AnswerEach(func(_ int, r *http.Request) string {
		if r.URL.Path == "/never" {
			<-release
		}
		return h1OK
	}))
	defer close(release)
	up := h1Upstream(t, addr, true, func(c *TransportConfig) { c.ResponseHeaderTimeout = 50 * time.Millisecond })
	_, _, err := h1Do(t, up, "GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

// The deadline of one request may pass in the next one, or in a body, or while
// nothing goes on. It must harm none.
func TestClientDeadlineOfAnEarlierRequest(t *testing.T) {
	more := make(chan struct{})
	addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
		for range 3 {
			if _, err := http.ReadRequest(br); err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
			<-more
			_, _ = io.WriteString(conn, "k")
		}
	})
	up := h1Upstream(t, addr, true, nil)
	pass := func(c *conn) {
		c.deadline = time.Now().Add(-time.Second)
		_ = c.tcp.SetReadDeadline(c.deadline)
	}
	var first *conn
	for range 3 {
		in, body := h1Incoming(t, h1Get)
		resp, err := up.RoundTrip(httptest.NewRecorder(), in, body)
		if err != nil {
			t.Fatal(err)
		}
		c := resp.Body.(*responseBody).c
		if first == nil {
			first = c
		} else if c != first {
			t.Error("the connection was given up")
		}
		pass(c)
		more <- struct{}{}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "ok" {
			t.Errorf("got %q, %v", b, err)
		}
		pass(c)
	}
}

// While a stream is silent it holds no buffer, and the client's leaving still
// ends it.
func TestClientWaitsWithoutABuffer(t *testing.T) {
	next, left := make(chan struct{}), make(chan struct{})
	addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
		_, _ = http.ReadRequest(br)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
		<-next
		_, _ = io.WriteString(conn, "3\r\ndef\r\n")
		_, _ = io.Copy(io.Discard, br)
		close(left)
	})
	up := h1Upstream(t, addr, true, nil)
	in, body := h1Incoming(t, h1Get)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := up.RoundTrip(httptest.NewRecorder(), in.WithContext(ctx), body)
	if err != nil {
		t.Fatal(err)
	}
	b := resp.Body.(*responseBody)
	buf := make([]byte, 3)
	read := func(want string) {
		t.Helper()
		if _, err := io.ReadFull(b, buf); err != nil || string(buf) != want {
			t.Fatalf("got %q, %v, want %s", buf, err, want)
		}
	}
	read("abc")
	waits := 0
	fill := b.c.fill
	b.c.fill = func(fd uintptr) (came bool) {
		if came = fill(fd); !came {
			waits++
			if b.c.borrowed != nil {
				t.Error("it waits with a buffer")
			}
		}
		return came
	}
	time.AfterFunc(10*time.Millisecond, func() { close(next) })
	b.Await(false)
	if waits == 0 || !b.Ready() {
		t.Errorf("%d waits, ready: %v", waits, b.Ready())
	}
	read("def")
	time.AfterFunc(10*time.Millisecond, cancel)
	b.Await(false)
	if _, err := b.Read(buf); err == nil {
		t.Error("read after the end of the context: no error")
	}
	wait(t, left)
}

// Closing a response waits for no upstream, wherever in its framing that has
// stopped.
func TestClientCloseDoesNotWait(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n3;x=y\r\nabc\r\n4\r\ndefg\r\n0\r\nX-A: 1\r\n\r\n"
	for i := strings.Index(answer, "\r\n\r\n") + 4; i < len(answer); i++ {
		hold := make(chan struct{})
		addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
			_, _ = http.ReadRequest(br)
			_, _ = io.WriteString(conn, answer[:i])
			<-hold
		})
		up := h1Upstream(t, addr, true, nil)
		in, body := h1Incoming(t, h1Get)
		resp, err := up.RoundTrip(httptest.NewRecorder(), in, body)
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() { _ = resp.Body.Close(); close(closed) }()
		wait(t, closed)
		if n := len(h1Idle(up)); n != 0 {
			t.Errorf("%q: %d idle connections, want that in the middle of an answer closed", answer[:i], n)
		}
		close(hold)
	}
}

// An interrupt that comes when the body has let go of its connection must not
// touch whoever uses it next.
func TestClientInterruptAfterTheEnd(t *testing.T) {
	addr := proxytest.ServeConns(t, proxytest.AnswerEach(func(int, *http.Request) string { return h1OK }))
	up := h1Upstream(t, addr, true, nil)
	in, body := h1Incoming(t, h1Get)
	resp, err := up.RoundTrip(httptest.NewRecorder(), in, body)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.(*responseBody).Interrupt()
	if idle := h1Idle(up); len(idle) != 1 || !idle[0].silent() {
		t.Errorf("%d idle connections, want one that lives", len(idle))
	}
}
