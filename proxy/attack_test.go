package proxy

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/remora-proxy/remora/proxy/forward"
	"github.com/remora-proxy/remora/proxy/httpclient"
)

// quietState waits until no more goroutines run than before, and returns the
// memory in use.
func quietState(t *testing.T, before int) uint64 {
	t.Helper()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines are left, %d were there before\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// attackedMemory is how much more memory an attack may take while it lasts, in
// bytes.
const attackedMemory = 48 << 20

// Floods of HTTP/2 frames on an intercepted connection end that connection or
// are answered, take little memory, leave nothing behind, and keep nobody else
// from being served.
func TestFloodsOfHTTP2(t *testing.T) {
	const n = 20_000
	get := func(enc *hpack.Encoder, block *bytes.Buffer) []byte {
		block.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", interceptedHost}, {":path", "/a"}} {
			_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		return block.Bytes()
	}
	post := func(enc *hpack.Encoder, block *bytes.Buffer) []byte {
		block.Reset()
		for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", interceptedHost}, {":path", "/v1/chat/completions"}} {
			_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		return block.Bytes()
	}
	for name, flood := range map[string]func(fr *http2.Framer, enc *hpack.Encoder, block *bytes.Buffer) error{
		"rapid reset": func(fr *http2.Framer, enc *hpack.Encoder, block *bytes.Buffer) error {
			for i := range uint32(n) {
				if err := fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: get(enc, block), EndHeaders: true, EndStream: true}); err != nil {
					return err
				}
				if err := fr.WriteRSTStream(2*i+1, http2.ErrCodeCancel); err != nil {
					return err
				}
			}
			return nil
		},
		"streams that stay open": func(fr *http2.Framer, enc *hpack.Encoder, block *bytes.Buffer) error {
			for i := range uint32(n) {
				if err := fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: post(enc, block), EndHeaders: true}); err != nil {
					return err
				}
				if err := fr.WriteData(2*i+1, false, []byte("{")); err != nil {
					return err
				}
			}
			return nil
		},
		"settings": func(fr *http2.Framer, _ *hpack.Encoder, _ *bytes.Buffer) error {
			for range n {
				if err := fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}); err != nil {
					return err
				}
			}
			return nil
		},
		"pings": func(fr *http2.Framer, _ *hpack.Encoder, _ *bytes.Buffer) error {
			for range n {
				if err := fr.WritePing(false, [8]byte{1}); err != nil {
					return err
				}
			}
			return nil
		},
		"continuations": func(fr *http2.Framer, enc *hpack.Encoder, block *bytes.Buffer) error {
			if err := fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: get(enc, block)}); err != nil {
				return err
			}
			for i := range n {
				block.Reset()
				_ = enc.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", i), Value: strings.Repeat("v", 1000)})
				if err := fr.WriteContinuation(1, false, block.Bytes()); err != nil {
					return err
				}
			}
			return nil
		},
		"empty data": func(fr *http2.Framer, enc *hpack.Encoder, block *bytes.Buffer) error {
			if err := fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: post(enc, block), EndHeaders: true}); err != nil {
				return err
			}
			for range n {
				if err := fr.WriteData(1, false, nil); err != nil {
					return err
				}
			}
			return nil
		},
		"window updates": func(fr *http2.Framer, _ *hpack.Encoder, _ *bytes.Buffer) error {
			for range n {
				if err := fr.WriteWindowUpdate(0, 1<<20); err != nil {
					return err
				}
			}
			return nil
		},
		"priorities": func(fr *http2.Framer, _ *hpack.Encoder, _ *bytes.Buffer) error {
			for i := range uint32(n) {
				if err := fr.WritePriority(2*i+1, http2.PriorityParam{StreamDep: 2*i + 3, Weight: 9}); err != nil {
					return err
				}
			}
			return nil
		},
		"no frames": func(fr *http2.Framer, _ *hpack.Encoder, _ *bytes.Buffer) error {
			return fr.WriteRawFrame(0xff, 0xff, 7, bytes.Repeat([]byte{0xff}, 1<<14))
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIntercepted(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(*forward.Config) {})
			ask := func() error {
				c := i.client(true)
				defer c.CloseIdleConnections()
				resp, err := c.Get("https://" + interceptedHost + "/a")
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				return err
			}
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			var start runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&start)
			before := runtime.NumGoroutine()
			conn, err := net.Dial("tcp", i.door)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", interceptedHost, interceptedHost)
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatal(err)
			}
			secure := tls.Client(conn, &tls.Config{RootCAs: i.roots, ServerName: interceptedHost, NextProtos: []string{"h2"}})
			if err := secure.Handshake(); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(secure, http2.ClientPreface)
			fr := http2.NewFramer(secure, nil)
			_ = fr.WriteSettings()
			var block bytes.Buffer
			attacked := make(chan error, 1)
			go func() { attacked <- flood(fr, hpack.NewEncoder(&block), &block) }() // nobody reads what is answered
			deadline := time.After(3 * time.Second)
			var most uint64
			for over := false; !over; {
				select {
				case <-attacked:
					over = true
				case <-deadline: // the server takes no more of it
					over = true
				case <-time.After(20 * time.Millisecond):
				}
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
			if err := ask(); err != nil {
				t.Errorf("another client: %v", err)
			}
			_ = conn.Close()
			quietState(t, before+2) // connections of the upstream may be idle
			if most > start.HeapInuse+attackedMemory {
				t.Errorf("the attack took %d MiB", (most-start.HeapInuse)>>20)
			}
		})
	}
}

// An upstream whose TLS is at fault, in any way, gives an honest error in time,
// or an answer that looks cut; nothing hangs and nothing is left.
func TestFaultsOfTLS(t *testing.T) {
	issue, roots := testAuthority(t)
	foreign, _ := testAuthority(t)
	right := issue("127.0.0.1")
	file := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(file, roots, 0o600); err != nil {
		t.Fatal(err)
	}
	record := func(kind byte, n int) []byte {
		return append(binary.BigEndian.AppendUint16([]byte{kind, 3, 3}, uint16(n)), bytes.Repeat([]byte{0xff}, min(n, 1<<14))...)
	}
	for name, test := range map[string]struct {
		serve func(conn net.Conn)
		kind  string // of the problem, "" = the answer is cut
	}{
		"no TLS":                 {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n") }, "upstream-tls"},
		"garbage":                {func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte{0xde, 0xad}, 4096)) }, "upstream-tls"},
		"closes at once":         {func(net.Conn) {}, "upstream-failed"},
		"alert":                  {func(c net.Conn) { _, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, 40}) }, "upstream-tls"},
		"endless alerts":         {func(c net.Conn) { flood(c, []byte{21, 3, 3, 0, 2, 1, 90}) }, "upstream-tls"},
		"record too long":        {func(c net.Conn) { _, _ = c.Write(record(22, 0xffff)) }, "upstream-tls"},
		"endless handshake":      {func(c net.Conn) { flood(c, record(22, 1<<14)) }, "upstream-tls"},
		"another name":           {func(c net.Conn) { serveTLS(c, issue("example.com"), nil, whole) }, "upstream-tls"},
		"an unknown authority":   {func(c net.Conn) { serveTLS(c, foreign("127.0.0.1"), nil, whole) }, "upstream-tls"},
		"an old version":         {func(c net.Conn) { serveTLS(c, right, &tls.Config{MaxVersion: tls.VersionTLS10}, whole) }, "upstream-tls"},
		"cut after the head":     {func(c net.Conn) { serveTLS(c, right, nil, cutTLS) }, ""},
		"no close notify":        {func(c net.Conn) { serveTLS(c, right, nil, cutTLS) }, ""},
		"broken record in it":    {func(c net.Conn) { serveTLS(c, right, nil, brokenTLS) }, ""},
		"another protocol (h2)":  {func(c net.Conn) { serveTLS(c, right, &tls.Config{NextProtos: []string{"h2"}}, whole) }, "upstream-protocol upstream-failed"},
		"half a head, then more": {func(c net.Conn) { serveTLS(c, right, nil, endlessHead) }, "upstream-protocol upstream-failed"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() { defer conn.Close(); test.serve(conn) }()
				}
			}()
			r := newRig(t, func(c *Config, _ *Deps) {
				c.Upstreams = []httpclient.UpstreamConfig{{Name: "secure", URL: "https://" + l.Addr().String(), Paths: []string{"/"}, CAFile: file}}
			})
			client := &http.Client{Timeout: patience, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			resp, err := client.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(chat("user: q")))
			if err != nil {
				if test.kind == "" {
					return // cut before its head
				}
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if test.kind == "" {
				if err == nil {
					t.Errorf("a cut answer looks whole: %d, %q", resp.StatusCode, body)
				}
				return
			}
			var p struct{ Type string }
			_ = json.Unmarshal(body, &p)
			_, kind, _ := strings.Cut(p.Type, "#")
			if resp.StatusCode != http.StatusBadGateway || !strings.Contains(test.kind, kind) || kind == "" {
				t.Errorf("got %d, %s", resp.StatusCode, body)
			}
		})
	}
}

// Hostile frames on a WebSocket whose frames are read end it or pass; what they
// take is charged and given back, and other clients are served.
func TestHostileFrames(t *testing.T) {
	mask := [4]byte{1, 2, 3, 4}
	head := func(first byte, length uint64) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, length), mask[:]...)
	}
	for name, frames := range map[string]func(c net.Conn){
		"a length beyond any": func(c net.Conn) { _, _ = c.Write(head(0x81, 1<<62)); flood(c, bytes.Repeat([]byte("x"), 4096)) },
		"a negative length":   func(c net.Conn) { _, _ = c.Write(head(0x81, 1<<63)); flood(c, []byte("x")) },
		"endless fragments": func(c net.Conn) {
			_, _ = c.Write([]byte{0x01, 0x80 | 1, 1, 2, 3, 4, 'x'})
			flood(c, []byte{0x00, 0x80 | 1, 1, 2, 3, 4, 'x'})
		},
		"empty fragments": func(c net.Conn) {
			_, _ = c.Write([]byte{0x01, 0x80, 1, 2, 3, 4})
			flood(c, []byte{0x00, 0x80, 1, 2, 3, 4})
		},
		"pings":                     func(c net.Conn) { flood(c, []byte{0x89, 0x80 | 1, 1, 2, 3, 4, 'p'}) },
		"unmasked":                  func(c net.Conn) { flood(c, []byte{0x81, 1, 'x'}) },
		"reserved bits":             func(c net.Conn) { flood(c, []byte{0xf1, 0x80 | 1, 1, 2, 3, 4, 'x'}) },
		"unknown opcodes":           func(c net.Conn) { flood(c, []byte{0x83, 0x80 | 1, 1, 2, 3, 4, 'x'}) },
		"long control frames":       func(c net.Conn) { flood(c, append(head(0x89, 4096), bytes.Repeat([]byte("x"), 4096)...)) },
		"continuation of nothing":   func(c net.Conn) { flood(c, []byte{0x80, 0x80 | 1, 1, 2, 3, 4, 'x'}) },
		"text within a text":        func(c net.Conn) { flood(c, []byte{0x01, 0x80 | 1, 1, 2, 3, 4, 'x'}) },
		"deeply nested":             func(c net.Conn) { flood(c, maskedText(strings.Repeat(`{"a":`, 20_000))) },
		"many requests, no answers": func(c net.Conn) { flood(c, maskedText(create("", "q"))) },
		"no UTF-8":                  func(c net.Conn) { flood(c, maskedText("{\"type\":\"response.create\",\"input\":\"\xff\xfe\"}")) },
		"closes again and again":    func(c net.Conn) { flood(c, []byte{0x88, 0x80 | 2, 1, 2, 3, 4, 3 ^ 1, 0xe8 ^ 2}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSocketRig(t, func(int, string) []string { return nil })
			go func() { // what reaches the upstream is read
				for range s.got {
				}
			}()
			<-s.head
			attack, _, _, err := (ws.Dialer{}).Dial(t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/v1/responses")
			if err != nil {
				t.Fatal(err)
			}
			<-s.head
			_ = attack.SetDeadline(time.Now().Add(500 * time.Millisecond))
			go func() { _, _ = io.Copy(io.Discard, attack) }()
			frames(attack) // the upstream here keeps what it reads, so memory shows nothing
			if used := s.h.bodies.used.Load(); used > s.h.bodies.limit {
				t.Errorf("%d bytes are charged, more than the limit", used)
			}
			_ = attack.Close()
			for deadline := time.Now().Add(patience); s.h.bodies.used.Load() != 0 || s.h.tees.used.Load() != 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d and %d bytes stay charged", s.h.bodies.used.Load(), s.h.tees.used.Load())
				}
			}
			s.send(create("", "is anybody there?")) // the other client's socket still works
			if n := s.h.stats.Panics.Load(); n > 0 {
				t.Errorf("%d panics", n)
			}
		})
	}
}

// flood writes piece until the connection takes no more, for a while at most.
func flood(c net.Conn, piece []byte) {
	_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	many := bytes.Repeat(piece, max(1, (64<<10)/len(piece)))
	for {
		if _, err := c.Write(many); err != nil {
			return
		}
	}
}

func maskedText(text string) []byte {
	var b bytes.Buffer
	_ = ws.WriteFrame(&b, ws.MaskFrame(ws.NewTextFrame([]byte(text))))
	return b.Bytes()
}

// What an upstream over TLS does with a connection.

func serveTLS(conn net.Conn, certificate tls.Certificate, cfg *tls.Config, answer func(raw net.Conn, secure *tls.Conn)) {
	if cfg == nil {
		cfg = &tls.Config{}
	}
	cfg.Certificates = []tls.Certificate{certificate}
	secure := tls.Server(conn, cfg)
	if secure.Handshake() != nil {
		return
	}
	if r, err := http.ReadRequest(bufio.NewReader(secure)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	answer(conn, secure)
}

func whole(_ net.Conn, secure *tls.Conn) {
	_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	_ = secure.Close()
}

func cutTLS(raw net.Conn, secure *tls.Conn) {
	_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok")
	_ = raw.Close()
}

func brokenTLS(raw net.Conn, secure *tls.Conn) {
	_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
	_, _ = raw.Write([]byte{23, 3, 3, 0, 5, 1, 2, 3, 4, 5})
	time.Sleep(10 * time.Millisecond)
}

func endlessHead(_ net.Conn, secure *tls.Conn) {
	_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\n")
	flood(secure, []byte("X-More: "+strings.Repeat("x", 1000)+"\r\n"))
}

// testAuthority returns what makes certificates for names, by a new authority.
func testAuthority(t *testing.T) (issue func(names ...string) tls.Certificate, roots []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return func(names ...string) tls.Certificate {
		leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: root.NotBefore, NotAfter: root.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				leaf.IPAddresses = append(leaf.IPAddresses, ip)
			} else {
				leaf.DNSNames = append(leaf.DNSNames, name)
			}
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
		if err != nil {
			t.Error(err)
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}, roots
}
