package httpclient

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// An upstream that closes a connection while a request is on its way has not
// read it: the request is sent again, whatever its method.
func TestClientSendsAgainWhatWasNotRead(t *testing.T) {
	var read, closed atomic.Int64
	addr := proxytest.ServeConns(t, func(i int, conn net.Conn, br *bufio.Reader) {
		for n := 0; ; n++ {
			if n == 3 && i < 20 {
				// The next request comes, and nobody reads it any more.
				for tcpQueued(conn) == 0 {
					time.Sleep(100 * time.Microsecond)
				}
				closed.Add(1)
				return
			}
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			read.Add(1)
			_, _ = io.WriteString(conn, h1OK)
		}
	})
	up := h1Upstream(t, addr, true, nil)
	for i := range 60 {
		if _, body, err := h1Do(t, up, h1Post); err != nil || body != "ok" {
			t.Fatalf("request %d: %q, %v, after %d connections were closed", i, body, err, closed.Load())
		}
	}
	if read.Load() != 60 || closed.Load() < 10 {
		t.Errorf("%d requests were read, want 60, of which %d came to a closed connection", read.Load(), closed.Load())
	}
}

// tcpQueued returns how many bytes a connection holds that nobody has read.
func tcpQueued(conn net.Conn) (n int) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}
