package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/proxytest"
)

// Trailers pass both ways, but for those that would frame a message, belong to
// one connection or are Remora's own.
func TestTrailersThatDoNotPass(t *testing.T) {
	for _, own := range []bool{true, false} {
		for _, streamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("own=%v/streamed=%v", own, streamed), func(t *testing.T) {
				seen := make(chan http.Header, 1)
				addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					seen <- r.Trailer
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Remora-Status\r\n\r\n2\r\nok\r\n0\r\n"+
						"X-Sum: 1\r\nX-Late: 2\r\nX-Remora-Status: injected\r\nContent-Length: 9\r\nTransfer-Encoding: gzip\r\n\r\n")
				})
				p := hopPlaneBy(t, "http://"+addr, own)
				conn := doorOf(t, p, func(w http.ResponseWriter, in *http.Request) httpclient.Body {
					if streamed {
						return httpclient.StreamBody(p.requestBody(w, in), in.ContentLength)
					}
					b, _ := io.ReadAll(in.Body)
					return httpclient.NewBody(nil, b)
				})
				mustWrite(t, conn, "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Remora-User\r\n\r\n3\r\nabc\r\n0\r\n"+
					"X-Sum: 7\r\nX-Remora-User: eve\r\nContent-Length: 5\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil {
					t.Errorf("got %q, %v", b, err)
				}
				if diff := cmp.Diff(http.Header{"X-Sum": {"7"}}, wait(t, seen)); diff != "" {
					t.Errorf("the upstream's trailers (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(http.Header{"X-Sum": {"1"}, "X-Late": {"2"}}, resp.Trailer); diff != "" {
					t.Errorf("the client's trailers (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// doorOf is a connection to a door that does nothing but send a request on with
// what body makes of its body, and relay the answer.
func doorOf(t *testing.T, p *plane, body func(w http.ResponseWriter, in *http.Request) httpclient.Body) net.Conn {
	t.Helper()
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		resp, err := p.choose(in).RoundTrip(w, in, body(w, in))
		if err != nil {
			t.Error(err)
			return
		}
		p.relay(w, in, resp, nil, nil)
	}))
	t.Cleanup(door.Close)
	conn, err := net.Dial("tcp", door.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // before the door, which waits for it
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}
