package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// earlyRig is a rig whose upstream sends answer as soon as it has the first
// byte of a body, and takes what else comes.
func earlyRig(t *testing.T, own bool, answer string, change func(*Config)) *rig {
	t.Helper()
	addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			if _, err := req.Body.Read(make([]byte, 1)); err != nil {
				return
			}
			_, _ = io.WriteString(conn, answer)
			_, _ = io.Copy(io.Discard, req.Body)
		}
	})
	return newRig(t, ownClient(own), func(c *Config, _ *Deps) {
		c.Upstreams[0].URL = "http://" + addr
		c.Limits.BodyBytes = 1 << 10
		if change != nil {
			change(c)
		}
	})
}

// earlyClient is a client that sends what it is told to, when it is told to.
type earlyClient struct {
	net.Conn
	br *bufio.Reader
}

func dialEarly(t *testing.T, r *rig) *earlyClient {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &earlyClient{conn, bufio.NewReader(conn)}
}

// answer reads one whole answer.
func (c *earlyClient) answer(t *testing.T) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		t.Fatalf("no answer while the body is under way: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the answer's body: %v", err)
	}
	return resp, string(body)
}

// ended says that nothing but the connection's end is left to read.
func (c *earlyClient) ended(t *testing.T) {
	t.Helper()
	if n, err := c.br.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the answer: %d bytes, %v, want the connection's end", n, err)
	}
}

const (
	plainAnswer   = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"
	chunkedAnswer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"
)

// earlyBodies are the ways in which a body is not read whole before the
// upstream is asked: the end of the head, and the body but for its last 10
// bytes. net/http waits for the rest of a chunk, so each is whole.
var earlyBodies = map[string]string{
	"chunked, off":     "X-Remora-Memory: off\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n",
	"chunked, large":   "Transfer-Encoding: chunked\r\n\r\n500\r\n" + strings.Repeat("x", 0x500) + "\r\n",
	"announced, off":   "X-Remora-Memory: off\r\nContent-Length: 1048586\r\n\r\n" + strings.Repeat("x", 1<<20),
	"announced, large": "Content-Length: 1290\r\n\r\n" + strings.Repeat("x", 0x500),
}

// An answer that comes while a body is being sent reaches the client before it
// goes on, and the connection is not used again.
func TestEarlyAnswers(t *testing.T) {
	for name, begin := range earlyBodies {
		for _, own := range []bool{true, false} {
			for _, answer := range []string{plainAnswer, chunkedAnswer} {
				t.Run(fmt.Sprintf("%s/own=%t/%.12s", name, own, answer), func(t *testing.T) {
					c := dialEarly(t, earlyRig(t, own, answer, nil))
					mustWrite(t, c, "POST "+apis[0].path+" HTTP/1.1\r\nHost: localhost\r\n"+begin)
					resp, body := c.answer(t)
					if body != "no" || !resp.Close {
						t.Errorf("got %q, to be closed: %t, want the answer and the connection's end", body, resp.Close)
					}
					_, _ = io.WriteString(c, "5\r\n") // the client goes on for a while, but not to the end
					c.ended(t)
				})
			}
		}
	}
}

// The same without an upstream to be reached: what is wrong is told at once.
func TestEarlyProblems(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens
	for name, begin := range earlyBodies {
		for _, own := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/own=%t", name, own), func(t *testing.T) {
				c := dialEarly(t, earlyRig(t, own, "", func(c *Config) { c.Upstreams[0].URL = "http://" + l.Addr().String() }))
				mustWrite(t, c, "POST "+apis[0].path+" HTTP/1.1\r\nHost: localhost\r\n"+begin)
				if resp, _ := c.answer(t); resp.StatusCode != http.StatusBadGateway {
					t.Errorf("got %d, want 502", resp.StatusCode)
				}
			})
		}
	}
}

// Whoever has sent all before the answer comes goes on with the connection.
func TestStreamedBodiesKeepTheConnection(t *testing.T) {
	for _, own := range []bool{true, false} {
		up := newCanned(t, nil)
		r := earlyRig(t, own, "", func(c *Config) { c.Upstreams[0].URL = "http://" + up.addr })
		c := dialEarly(t, r)
		for name, begin := range earlyBodies {
			end := "0123456789"
			if strings.HasPrefix(name, "chunked") {
				end = "a\r\n" + end + "\r\n0\r\n\r\n"
			}
			mustWrite(t, c, "POST "+apis[0].path+" HTTP/1.1\r\nHost: localhost\r\n"+begin+end)
			if resp, _ := c.answer(t); resp.Close || resp.StatusCode != 200 {
				t.Errorf("%s, own=%t: got %d, to be closed: %t", name, own, resp.StatusCode, resp.Close)
			}
			if got := wait(t, up.requests); !strings.HasSuffix(got.Body, "0123456789") {
				t.Errorf("%s, own=%t: the body does not arrive", name, own)
			}
		}
	}
}

// A client that stops in the midst of its body is ended by the read deadline,
// though it has the beginning of an answer.
func TestEarlyAnswerToAClientThatStops(t *testing.T) {
	for _, own := range []bool{true, false} {
		const begun = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nno"
		c := dialEarly(t, earlyRig(t, own, begun, func(c *Config) { c.Streams.ReadIdle = 300 * time.Millisecond }))
		mustWrite(t, c, "POST "+apis[0].path+" HTTP/1.1\r\nHost: localhost\r\n"+earlyBodies["chunked, off"])
		resp, err := http.ReadResponse(c.br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "no" || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("own=%t: got %q, %v, want an answer that is cut off", own, body, err)
		}
	}
}

// A client that reads nothing before it has sent all gets an answer that no
// socket holds.
func TestEarlyAnswerToAClientThatSendsFirst(t *testing.T) {
	const size = 16 << 20
	request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", apis[0].path, size, strings.Repeat("b", size))
	for _, own := range []bool{true, false} {
		addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			taken := make(chan struct{})
			go func() { defer close(taken); _, _ = io.Copy(io.Discard, req.Body) }()
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("a", size-1))
			<-taken // or the answer might be over before the body, of which then not all need be taken
			_, _ = io.WriteString(conn, "a")
		})
		c := dialEarly(t, earlyRig(t, own, "", func(c *Config) { c.Upstreams[0].URL = "http://" + addr }))
		mustWrite(t, c, request)
		if _, body := c.answer(t); len(body) != size {
			t.Errorf("own=%t: got %d bytes, want %d", own, len(body), size)
		}
	}
}
