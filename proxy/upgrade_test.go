package proxy

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestIsUpgrade(t *testing.T) {
	tests := []struct {
		name, head string
		want       bool
	}{
		{"websocket", "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", true},
		{"odd case, list", "GET / HTTP/1.1\r\nConnection: keep-alive, UPGRADE\r\nUpgrade: WebSocket\r\n", true},
		{"any protocol", "POST / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: tcp\r\n", true},
		{"not in connection", "GET / HTTP/1.1\r\nUpgrade: websocket\r\n", false},
		{"no protocol", "GET / HTTP/1.1\r\nConnection: upgrade\r\n", false},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", false},
		{"h2c offer", "POST / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", false},
	}
	for _, tt := range tests {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(tt.head + "Host: x\r\n\r\n")))
		if err != nil {
			t.Fatal(err)
		}
		if got := isUpgrade(r); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// echoUpgrade switches to a protocol that echoes until the client half-closes,
// then says bye.
func echoUpgrade(gone chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isUpgrade(r) || r.Header.Get("Sec-WebSocket-Key") != "k" || r.Header.Get("X-Remora-User") != "" {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		if r.URL.Query().Has("refuse") {
			w.Header().Set("Sec-WebSocket-Version", "13")
			http.Error(w, "wrong version", http.StatusUpgradeRequired)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Accept: a\r\n\r\nhello,", r.Header.Get("Upgrade"))
		_, err = io.Copy(conn, rw.Reader)
		if err == nil {
			_, _ = io.WriteString(conn, "bye")
		}
		if gone != nil {
			close(gone)
		}
	})
}

const upgradeHead = "GET /v1/realtime%s HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Key: k\r\nX-Remora-User: u\r\n\r\n"

func TestUpgrade(t *testing.T) {
	plain := httptest.NewServer(echoUpgrade(nil))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(echoUpgrade(nil))
	secure.EnableHTTP2 = true // which cannot carry an upgrade, so it must not be chosen
	secure.StartTLS()
	defer secure.Close()
	for _, up := range []*httptest.Server{plain, secure} {
		t.Run(up.URL[:5], func(t *testing.T) {
			p := hopPlane(t, up.URL, trusting(t, up))
			done := make(chan relayed, 1)
			door := hopServe(t, hop{p: p, done: func(r relayed) { done <- r }})
			conn, err := net.Dial("tcp", door)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			// The first frame comes in the same packet as the request.
			mustWrite(t, conn, fmt.Sprintf(upgradeHead, "")+"first,")
			br := bufio.NewReader(conn)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "a" || !strings.EqualFold(resp.Header.Get("Connection"), "upgrade") ||
				resp.Header.Get("Upgrade") != "websocket" {
				t.Fatalf("got %d %v", resp.StatusCode, resp.Header)
			}
			big := rand.Text() + strings.Repeat("x", 200_000)
			go func() {
				_, _ = io.WriteString(conn, big)
				_ = conn.(*net.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(br)
			if want := "hello,first," + big + "bye"; err != nil || string(got) != want {
				t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
			}
			if r := wait(t, done); !r.Complete || r.Status != 101 || r.Bytes != int64(len(got)) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestUpgradeRefused(t *testing.T) {
	door := hopServe(t, hop{p: hopPlane(t, hopListen(t, echoUpgrade(nil)))})
	resp, body, err := exchangeRaw(t, door, fmt.Sprintf(upgradeHead, "?refuse"))
	if err != nil || resp.StatusCode != http.StatusUpgradeRequired || body != "wrong version\n" || resp.Header.Get("Sec-WebSocket-Version") != "13" {
		t.Errorf("got %v %q, %v, want the upstream's 426", resp, body, err)
	}
	door = hopServe(t, hop{p: hopPlane(t, "http://127.0.0.1:1")}) // a port that is never given out
	if resp, _, err = exchangeRaw(t, door, fmt.Sprintf(upgradeHead, "")); err != nil || resp.StatusCode != http.StatusBadGateway {
		t.Errorf("got %v, %v, want a 502", resp, err)
	}
}

func TestUpgradedClientLeavingReachesUpstream(t *testing.T) {
	gone := make(chan struct{})
	door := hopServe(t, hop{p: hopPlane(t, hopListen(t, echoUpgrade(gone)))})
	conn, err := net.Dial("tcp", door)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, conn, fmt.Sprintf(upgradeHead, ""))
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
	wait(t, gone)
}

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http complains there of what these tests do on purpose
	m.Run()
}

// Codex goes on over HTTP at once when it is told to; whoever might not is
// tunnelled, and so is who wants no memory.
func TestWebSocketFallback(t *testing.T) {
	codex := []string{"Originator", "codex_exec"}
	for _, tt := range []struct {
		name, setting, path string
		header              []string
		want                int
	}{
		{"Codex", WebSocketFallback, "/v1/responses", codex, http.StatusUpgradeRequired},
		{"Codex, pass", WebSocketPass, "/v1/responses", codex, http.StatusTeapot},
		{"Codex elsewhere", WebSocketFallback, "/v1/realtime", codex, http.StatusTeapot},
		{"Codex without memory", WebSocketFallback, "/v1/responses", append([]string{headerMemory, "off"}, codex...), http.StatusTeapot},
		{"another client", WebSocketFallback, "/v1/responses", []string{"User-Agent", "curl/8"}, http.StatusTeapot},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(c *Config, _ *Deps) { c.WebSocket = tt.setting })
			r.answers(func(received) (int, string, string) { return http.StatusTeapot, "text/plain", "upstream" })
			req, _ := http.NewRequest("GET", r.url+tt.path, nil)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "websocket")
			for i := 0; i < len(tt.header); i += 2 {
				req.Header.Set(tt.header[i], tt.header[i+1])
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("got %d, want %d", resp.StatusCode, tt.want)
			}
			if got := resp.Header.Get("Upgrade") != ""; got != (tt.want == http.StatusUpgradeRequired) {
				t.Errorf("Upgrade header: %v", got)
			}
		})
	}
}
