//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// asSeen is a handler that answers with what it sees of a request, in a way that the path chooses.
func asSeen(w http.ResponseWriter, r *http.Request) {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%s %q %q %q %q %s %d %v", r.Method, r.RequestURI, r.URL.Path, r.URL.RawQuery, r.Host, r.Proto, r.ContentLength, r.TransferEncoding)
	unforge(r.Header, "")
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		_, _ = fmt.Fprintf(&b, " %s%q", name, r.Header[name])
	}
	ctl := http.NewResponseController(w)
	head := func() { _, _ = io.WriteString(w, b.String()) }
	switch r.URL.Path {
	case "/unread":
		head()
	case "/early":
		_ = ctl.EnableFullDuplex()
		head()
		_ = ctl.Flush()
		p, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, " %d %.2000q %v", len(p), p, err)
	case "/close":
		w.Header().Set("Connection", "close")
		head()
	case "/refused":
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case "/half":
		_, _ = r.Body.Read(make([]byte, 3))
		_ = r.Body.Close()
		head()
	case "/panic":
		panic(http.ErrAbortHandler)
	default:
		p, err := io.ReadAll(r.Body)
		head()
		_, _ = fmt.Fprintf(w, " %d %.2000q %v", len(p), p, err)
	}
}

// conversation is what s says to raw, cut into pieces by r, until it hangs up or has been quiet for long enough.
func conversation(s served, raw string, r *rand.Rand, quiet time.Duration) string {
	var choppy *choppyConn // beneath TLS
	conn, err := s.dialBeneath(func(c net.Conn) net.Conn { choppy = &choppyConn{Conn: c}; return choppy })
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if choppy != nil {
		choppy.chop(rand.New(rand.NewPCG(r.Uint64(), 4)))
	}
	said, heard := make(chan struct{}), make(chan string, 1)
	var mu sync.Mutex
	last, done := time.Now(), false
	touch := func() { mu.Lock(); last = time.Now(); mu.Unlock() }
	go func() {
		var b strings.Builder
		p := make([]byte, 16<<10)
		for {
			n, err := conn.Read(p)
			touch()
			b.Write(p[:n])
			if err != nil {
				end := "end"
				if os.IsTimeout(err) {
					end = "no end"
				}
				mu.Lock()
				done = true
				mu.Unlock()
				heard <- b.String() + "\n" + end
				return
			}
		}
	}()
	go func() {
		defer close(said)
		if choppy != nil {
			defer choppy.calm()
		}
		for left := raw; left != ""; {
			n := len(left)
			switch r.IntN(4) {
			case 0:
			case 1:
				n = min(n, 1+r.IntN(8))
			case 2:
				n = min(n, 1+r.IntN(100))
			case 3:
				n = min(n, 1+r.IntN(5000))
			}
			if _, err := io.WriteString(conn, left[:n]); err != nil {
				return
			}
			touch()
			if left = left[n:]; r.IntN(3) == 0 {
				time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
			}
		}
	}()
	<-said
	for {
		time.Sleep(quiet / 8)
		mu.Lock()
		over := done || time.Since(last) > quiet
		mu.Unlock()
		if over {
			break
		}
	}
	_ = closeWrite(conn)
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	all := <-heard
	all = strings.ReplaceAll(all, "Connection: close\r\n", "") // net/http leaves it out after a body that broke off
	return unchunked(regexp.MustCompile(`Date: [^\r]*`).ReplaceAllString(all, "Date: now"))
}

var sound = []string{
	"GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
	"POST /c?d=e HTTP/1.1\r\nhost: h:80\r\ncontent-length: 12\r\nConnection: keep-alive\r\nX-Y: a, b\r\n\r\nGET / HTTP/1",
	"POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 35\r\n\r\nGET /x HTTP/1.1\r\nHost: smuggled\r\n\r\n",
	"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}\r\n",
	"POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
	"POST /half HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\nabcdefg",
	"POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}",
	"POST /t HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"POST /t HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
	"POST /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
	"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n",
	"PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
	"GET /z HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
	"GET http://u@other:1/x HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET //other/x HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /%2f%41/../x?y=%zz HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /close HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /panic HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
	"\r\nGET /crlf HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /many HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X-A: b\r\n", 31) + "\r\n",
	"GET /long HTTP/1.1\r\nHost: h\r\nX-L: " + strings.Repeat("l", 4030) + "\r\n\r\n",
	"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("n", 9000),
	"POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("GET / HTTP/1.1\r\nH:h\r\n", 952) + "12345678",
}

var (
	hostileFields = []string{
		"Content-Length: 5\r\n", "Content-Length: 05\r\n", "Content-Length: +5\r\n", "Content-Length: -0\r\n", "Content-Length: 5, 5\r\n",
		"Content-Length: 5 \r\n", "Content-Length:\t5\r\n", "Content-Length : 5\r\n", "Content-Length: 0x5\r\n", "Content-Length: 18446744073709551621\r\n",
		"Content-Length: 9223372036854775813\r\n", "Content-Length: 000000000000000000005\r\n", "content-LENGTH: 0\r\n", "Content-Length:\r\n", "Content_Length: 5\r\n",
		"Content-Length: \x0b5\r\n", "Content-Length\x00: 5\r\n", "Content-Length: 5\x00\r\n", "Content-Length: 5\n", "Content-Length: 5\r", " Content-Length: 5\r\n",
		"Transfer-Encoding: chunked\r\n", "transfer-encoding: Chunked\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunked, identity\r\n",
		"Transfer-Encoding:\x0bchunked\r\n", "Transfer-Encoding : chunked\r\n", "Transfer-Encoding:\r\n chunked\r\n", "X: y\nTransfer-Encoding: chunked\r\n", "X: y\rTransfer-Encoding: chunked\r\n",
		"Transfer_Encoding: chunked\r\n", "TE: trailers\r\n", "Host: other\r\n", "Host: u@h\r\n", "Host: h/x\r\n", "Host:\r\n", "host: h\r\n", "Host: [::1]:80\r\n", "Host: h\x00\r\n",
		"Connection: close\r\n", "Connection: Content-Length\r\n", "Connection: keep-alive, close\r\n", "Connection: KEEP-ALIVE\r\n", "Connection:\r\n", "Keep-Alive: 5\r\n",
		"Expect: 100-continue\r\n", "Expect: x\r\n", "Upgrade: websocket\r\nConnection: upgrade\r\n", "Pragma: no-cache\r\n", "Trailer: Content-Length\r\n",
		"X: a\r\n b\r\n", "X: a\r\n\tb\r\n", ": x\r\n", "X\r\n", "X:\x7f\r\n", "X: \xff\r\n", "X: a\tb \t\r\n", "X-\xe9: a\r\n", "x{y}: a\r\n", "\r\n", "\n", "\r", "\x00",
	}
	hostileBytes   = "\r\n\t :;,/?#%@\x00\x0b\x7f\x80\xff+-0159aZ"
	hostileTargets = []string{"/a", "//a", "*", "a", "http://x/y", "https:///", "/%00", "/%zz", "/a b", "/a\tb", "/\xc3\xa9", "/a#b", "/a?b?c", "///", "/:80", "/\\", "/;a=b", "/\"<>", "/[", ""}
)

// mutated is a sequence of requests, some of which r has broken.
func mutated(r *rand.Rand) string {
	var all strings.Builder
	for range 1 + r.IntN(4) {
		raw := sound[r.IntN(len(sound))]
		for n := r.IntN(4); n > 0; n-- {
			switch r.IntN(7) {
			case 0: // a field more, at a line's begin
				at := slices.Collect(lineStarts(raw))
				i := at[r.IntN(len(at))]
				raw = raw[:i] + hostileFields[r.IntN(len(hostileFields))] + raw[i:]
			case 1, 2: // a byte more, less, or another
				i := r.IntN(min(len(raw), 200))
				c := string(hostileBytes[r.IntN(len(hostileBytes))])
				raw = raw[:i] + []string{c, c + raw[i:i+1], ""}[r.IntN(3)] + raw[i+1:]
			case 3: // another target
				if f := strings.SplitN(raw, " ", 3); len(f) == 3 {
					raw = f[0] + " " + hostileTargets[r.IntN(len(hostileTargets))] + " " + f[2]
				}
			case 4: // letter case
				i := r.IntN(min(len(raw), 120))
				raw = raw[:i] + strings.ToUpper(raw[i:min(i+20, len(raw))]) + raw[min(i+20, len(raw)):]
			case 5: // another length
				raw = regexp.MustCompile(`(?i)content-length: \d+`).ReplaceAllString(raw, "Content-Length: "+strconv.Itoa(r.IntN(40)))
			case 6:
				raw = raw[:r.IntN(len(raw))+1]
			}
			raw = cmp.Or(raw, "G")
		}
		all.WriteString(raw)
	}
	return all.String()
}

func lineStarts(raw string) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := 0; i < min(len(raw), 500); i++ {
			if (i == 0 || raw[i-1] == '\n') && !yield(i) {
				return
			}
		}
	}
}

// Whatever comes on a connection, in whatever pieces, the door and net/http see the same requests on it and say the same. With
// REMORA_DOOR_CASES=n it tries n others at each run.
func TestDoorIsNetHTTPByConnection(t *testing.T) { onEachWire(t, doorIsNetHTTPByConnection) }

func doorIsNetHTTPByConnection(t *testing.T, on wire) {
	cases, from := 300, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("REMORA_DOOR_CASES")); err == nil {
		cases, from = n, uint64(time.Now().UnixNano())
	}
	here, there := on.serve(t, true, http.HandlerFunc(asSeen), nil), on.serve(t, false, http.HandlerFunc(asSeen), nil)
	turns := make(chan struct{}, 64)
	var wg sync.WaitGroup
	for i := range uint64(cases) {
		seed := from + i
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			raw := mutated(rand.New(rand.NewPCG(seed, 1)))
			var got, want string
			for quiet := 150 * time.Millisecond; quiet < 3*time.Second; quiet *= 4 { // what differs in haste alone does not differ
				got = conversation(here, raw, rand.New(rand.NewPCG(seed, 2)), quiet)
				want = conversation(there, raw, rand.New(rand.NewPCG(seed, 3)), quiet)
				if got == want {
					return
				}
				if refused, ok := strings.CutPrefix(got, strings.TrimSuffix(want, "\nend\r\n\r\n")); ok && strings.HasPrefix(refused, "HTTP/1.1 400 ") && strings.Count(refused, "HTTP/1.1") == 1 {
					return // of an end in the midst of a head the door tells, net/http does not where less than 4 bytes of it came
				}
			}
			t.Errorf("%d: %.1500q\nnet/http: %.1500q\ndoor:     %.1500q", seed, raw, want, got)
		})
	}
	wg.Wait()
}
