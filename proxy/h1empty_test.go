package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// An answer without a body to a request that was sent by a goroutine ends at once: nothing more will come to be awaited.
func TestH1EmptyAnswerToAnUpload(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	} {
		addr := h1Serve(t, func(n int, conn net.Conn, br *bufio.Reader) {
			answerEach(func(int, *http.Request) string { return answer })(n, conn, br)
		})
		p := h1Plane(t, addr, true, nil)
		conn := doorOf(t, p, func(w http.ResponseWriter, in *http.Request) outBody {
			return streamBody(p.requestBody(w, in), in.ContentLength)
		})
		br := bufio.NewReader(conn)
		for i := range 2 { // the second shows that the handler of the first is through
			if _, err := fmt.Fprintf(conn, "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(br, &http.Request{Method: http.MethodPost})
			if err != nil {
				t.Fatalf("%s: answer %d: %v", strings.SplitN(answer, "\r", 2)[0], i, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		if n := len(h1Idle(p)); n != 1 {
			t.Errorf("%d idle connections, want 1", n)
		}
	}
}
