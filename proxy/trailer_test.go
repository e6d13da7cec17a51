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

// What arrived of an answer reaches the client: its head, if the body breaks
// off at once, and the trailers, if there is no body.
func TestAnswersWithoutABody(t *testing.T) {
	const broken = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\n"
	const brokenChunked = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n"
	const announced = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n0\r\nX-Sum: 1\r\n\r\n"
	const unannounced = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\n\r\n"
	for name, answer := range map[string]string{"broken": broken, "broken, chunked": brokenChunked, "announced": announced, "unannounced": unannounced} {
		for _, own := range []bool{true, false} {
			for _, version := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s/own=%v/HTTP%d", name, own, version), func(t *testing.T) {
					addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
						if _, err := http.ReadRequest(br); err == nil {
							_, _ = io.WriteString(conn, answer)
						}
					})
					address := hopServe(t, hop{p: hopPlaneBy(t, "http://"+addr, own)})
					protocols := new(http.Protocols)
					protocols.SetHTTP1(version == 1)
					protocols.SetUnencryptedHTTP2(version == 2)
					client := &http.Client{Transport: &http.Transport{Protocols: protocols}, Timeout: patience}
					defer client.CloseIdleConnections()
					resp, err := client.Get("http://" + address + "/a")
					if err != nil {
						t.Fatalf("nothing of the answer has arrived: %v", err)
					}
					defer resp.Body.Close()
					_, err = io.ReadAll(resp.Body)
					if answer == broken || answer == brokenChunked {
						if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" || err == nil {
							t.Errorf("got %d, Retry-After %q, %v", resp.StatusCode, resp.Header.Get("Retry-After"), err)
						}
					} else if err != nil || resp.Trailer.Get("X-Sum") != "1" {
						t.Errorf("got the trailers %v, %v", resp.Trailer, err)
					}
				})
			}
		}
	}
}
