package proxy

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// A stream that the upstream has begun is an accepted request, long before its
// end: with its first event, where only its head has come, and where it has
// nothing to say.
func TestStreamsReachTheLedger(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, answer := range map[string]string{"event": head + "a\r\ndata: {}\n\n\r\n", "head": head, "empty": head + "0\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
				if _, err := http.ReadRequest(br); err == nil {
					_, _ = conn.Write([]byte(answer))
				}
				<-end
			})
			defer close(end)
			r := newRig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = "http://" + addr })
			r.recall.set("fact")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+r.path, strings.NewReader(chat("user: q1")))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer sk-rig")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			for by := time.Now().Add(patience); len(segments(t, r.local)) == 0; time.Sleep(time.Millisecond) {
				if r.h.ledger.Flush(t.Context()); time.Now().After(by) {
					t.Fatal("nothing was stored")
				}
			}
		})
	}
}
