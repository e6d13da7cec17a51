//go:build unix

package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// BenchmarkRequest is one request that reads memory, from socket to socket,
// with all but recall itself and the program around it. Client and upstream
// write what they have ready and allocate nothing, so the allocations are the
// proxy's.
func BenchmarkRequest(b *testing.B) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n" + strings.Repeat("x", 1024))
	upstream := proxytest.ServeConns(b, func(_ int, conn net.Conn, _ *bufio.Reader) {
		for buf := make([]byte, 64<<10); ; {
			if readMessage(conn, buf) == 0 {
				return
			}
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	})
	h := benchHandler(b, "http://"+upstream)
	door := hopServe(b, h)

	body := `{"model":"m","messages":[{"role":"system","content":"` + strings.Repeat("Be brief and kind. ", 40) +
		`"},{"role":"user","content":"Where is the meeting of number 000000000000?"}]}`
	request := []byte(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\n"+
		"Authorization: Bearer key-of-a-user-0123456789\r\nContent-Type: application/json\r\nAccept: application/json\r\n"+
		"X-Remora-User: u\r\nX-Remora-Memory: read\r\nContent-Length: %d\r\n\r\n%s", door, len(body), body))
	digits := bytes.LastIndex(request, []byte("000000000000"))
	conn, err := net.Dial("tcp", door)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	buf := make([]byte, 64<<10)
	before := cpuTime(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		for i, d := 0, n; i < 12; i++ {
			request[digits+11-i] = byte('0' + d%10)
			d /= 10
		}
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		if got := buf[:readMessage(conn, buf)]; !bytes.Contains(got, []byte("X-Remora-Memories: 8\r\n")) {
			b.Fatalf("got %.300q", got)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(n), "cpu-us/op")
}

// readMessage reads a message with a Content-Length into buf and returns its length, 0 at the end of conn.
func readMessage(conn io.Reader, buf []byte) int {
	for n := 0; n < len(buf); {
		m, err := conn.Read(buf[n:])
		if n += m; err != nil {
			return 0
		}
		head := bytes.Index(buf[:n], []byte("\r\n\r\n"))
		at := bytes.Index(buf[:n], []byte("Content-Length: "))
		if head < 0 || at < 0 || at > head {
			continue
		}
		length := 0
		for _, d := range buf[at+len("Content-Length: ") : head] {
			if d < '0' || d > '9' {
				break
			}
			length = 10*length + int(d-'0')
		}
		if n >= head+4+length {
			return n
		}
	}
	return 0
}
