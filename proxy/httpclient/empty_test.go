package httpclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// A response without a body to a request that a goroutine sends ends at once:
// there is nothing left to wait for.
func TestClientEmptyAnswerToAnUpload(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	} {
		up := h1Upstream(t, proxytest.ServeConns(t, proxytest.AnswerEach(func(int, *http.Request) string { return answer })), true, nil)
		for range 2 {
			in, _ := h1Incoming(t, h1Post)
			resp, err := up.RoundTrip(httptest.NewRecorder(), in, StreamBody(io.NopCloser(strings.NewReader("abc")), -1))
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, resp.Body)
				ended <- err
			}()
			if err := wait(t, ended); err != nil {
				t.Error(err)
			}
		}
		if n := len(h1Idle(up)); n != 1 {
			t.Errorf("%d idle connections, want 1", n)
		}
	}
}
