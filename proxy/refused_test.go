package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// An upstream that begins to refuse an enriched request and never comes to an
// end holds nobody: after a while, what has come decides.
func TestRefusalsThatNeverEnd(t *testing.T) {
	for _, tt := range []struct {
		name, refusal string
		trickle       bool
		code          int
	}{
		{name: "nothing after the head", refusal: "HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n", code: 200},
		{name: "the middle of a chunk's frame", refusal: "HTTP/1.1 422 Unprocessable Entity\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1", code: 200},
		{name: "drop by drop", refusal: "HTTP/1.1 413 Too Large\r\n\r\n", trickle: true, code: 200},
		{name: "a template's words, and no end", code: 200,
			refusal: "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 1000\r\n\r\n" + `{"error":{"message":"Conversation roles must alternate user/assistant","pad":"`},
		{name: "nobody's fault", refusal: "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 10\r\n\r\n", code: 500},
	} {
		for _, own := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/own=%v", tt.name, own), func(t *testing.T) {
				t.Parallel()
				addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
					for {
						in, err := http.ReadRequest(br)
						if err != nil {
							return
						}
						body, _ := io.ReadAll(in.Body)
						if !fence.Contains(string(body)) {
							answer := chatAnswer("", "fine")
							_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
							continue
						}
						_, _ = io.WriteString(conn, tt.refusal)
						for tt.trickle {
							if _, err := io.WriteString(conn, "."); err != nil {
								return
							}
							time.Sleep(10 * time.Millisecond)
						}
						if tt.code == 500 { // the client must see the head before the rest comes
							time.Sleep(2 * refusalTimeout)
							_, _ = io.WriteString(conn, "0123456789")
							continue
						}
						_, _ = io.Copy(io.Discard, br)
						return
					}
				})
				r := newRig(t, ownClient(own), func(c *Config, _ *Deps) { c.Upstreams[0].URL = "http://" + addr })
				r.recall.set("fact")
				got := r.post(chat("user: q"))
				want := StatusRejected
				if tt.code == 500 {
					want = StatusInjected
				}
				if got.code != tt.code || got.status != want {
					t.Errorf("got %d, %s, want %d, %s", got.code, got.status, tt.code, want)
				}
				if tt.code == 500 && got.body != "0123456789" {
					t.Errorf("the refusal arrives as %q", got.body)
				}
				lesson := r.h.placements.lessons[modelKey{upstream: "mock", dialect: dialect.Chat{}.Name(), model: "m"}]
				if got, want := !lesson.inUser.IsZero(), strings.Contains(tt.refusal, "roles must alternate"); got != want {
					t.Errorf("learned the place: %v, want %v", got, want)
				}
			})
		}
	}
}

// A refusal that was looked at is the client's byte for byte, in whatever
// pieces it comes.
func TestRefusalIsPassedOnWhole(t *testing.T) {
	for _, size := range []int{0, 1, smallBuffer, maxPeek - 1, maxPeek, maxPeek + 1, 5 * maxPeek} {
		whole := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		body, head, _ := peekBody(nil, io.NopCloser(io.MultiReader(strings.NewReader(whole[:size/2]), strings.NewReader(whole[size/2:]))), refusalTimeout, nil)
		if want := whole[:min(size, maxPeek)]; string(head) != want {
			t.Errorf("%d bytes: saw %d, want %d", size, len(head), len(want))
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != whole {
			t.Errorf("%d bytes: passed on %d, %v", size, len(got), err)
		}
	}
}

// Whoever reads ahead ends with the exchange.
func TestRefusalLeavesNoGoroutine(t *testing.T) {
	reader, writer := io.Pipe()
	before := runtime.NumGoroutine()
	body, _, _ := peekBody(nil, reader, refusalTimeout, nil)
	_ = body.Close()
	_ = writer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for runtime.NumGoroutine() > before {
		if ctx.Err() != nil {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}
