package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/proxy/problem"
	"github.com/remora-proxy/remora/recall"
)

// awaitLogged returns once the line of an exchange is in log.
func awaitLogged(t *testing.T, log *lines) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if got := log.String(); strings.Contains(got, "msg=exchange") {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is logged")
		}
	}
}

// TestLogTellsWhatFailed: `failed` is a word of one table, whatever the error
// is: no name of a Go type, and nothing that a peer said.
func TestLogTellsWhatFailed(t *testing.T) {
	canned := newCanned(t, map[string]string{
		"/close":       "",
		"/smtp/close":  "220 mail.example hush ESMTP\r\n\r\n",
		"/short/close": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhush",
		"/chunk/close": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhush\r\n",
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, test := range []struct{ name, url, path, want string }{
		{"refused", "http://" + closed.Addr().String(), "/", "upstream-unreachable"},
		{"no such name", "http://no-such-host.invalid", "/", "upstream-unreachable"},
		{"no such name over TLS", "https://no-such-host.invalid", "/", "upstream-unreachable"},
		{"no TLS", strings.Replace(hopListen(t, http.NotFoundHandler()), "http:", "https:", 1), "/", "upstream-tls"},
		{"no HTTP", "http://" + canned.addr, "/smtp/close", "upstream-protocol"},
		{"no answer", "http://" + canned.addr, "/close", "upstream-failed"},
		{"too short an answer", "http://" + canned.addr, "/short/close", causeUpstreamEarly},
		{"a chunk that is none", "http://" + canned.addr, "/chunk/close", "upstream-failed"},
		{"an upgrade", "http://" + closed.Addr().String(), "/upgrade", "upstream-unreachable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := &lines{}
			r := newRig(t, func(c *Config, d *Deps) {
				d.Log = slog.New(slog.NewTextHandler(log, nil))
				c.Upstreams = []httpclient.UpstreamConfig{{Name: "up", URL: test.url, Paths: []string{"/"}}}
			})
			request, err := http.NewRequest(http.MethodGet, r.url+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.path == "/upgrade" {
				request.Header.Set("Connection", "Upgrade")
				request.Header.Set("Upgrade", "websocket")
			}
			if resp, err := http.DefaultClient.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			got := awaitLogged(t, log)
			m := regexp.MustCompile(`failed=("[^"]*"|\S*)`).FindStringSubmatch(got)
			if m == nil || strings.Trim(m[1], `"`) != test.want || strings.Contains(got, "hush") {
				t.Errorf("got %s, want failed=%q", got, test.want)
			}
			if told := slices.Contains(problem.Kinds(), test.want); told != strings.Contains(got, "detail=") && test.want != "upstream-failed" {
				t.Errorf("got %s, want the problem's detail %v", got, told)
			}
		})
	}
}

// TestLogTellsOfABadBody: a request whose body broke off is not one that went well.
func TestLogTellsOfABadBody(t *testing.T) {
	log := &lines{}
	r := newRig(t, func(_ *Config, d *Deps) { d.Log = slog.New(slog.NewTextHandler(log, nil)) })
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := awaitLogged(t, log); !strings.Contains(got, "failed=request-body") {
		t.Errorf("got %s", got)
	}
}

// TestLogTellsOfACut: what Remora's own end has cut was not the client's doing, before the answer and in its midst.
func TestLogTellsOfACut(t *testing.T) {
	for _, begun := range []bool{false, true} {
		log, reached, hold := &lines{}, make(chan struct{}, 1), make(chan struct{})
		up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if begun {
				_, _ = io.WriteString(w, "some")
				_ = http.NewResponseController(w).Flush()
			}
			reached <- struct{}{}
			<-hold
		}))
		r := newRig(t, func(c *Config, d *Deps) {
			d.Log = slog.New(slog.NewTextHandler(log, nil))
			c.Upstreams = []httpclient.UpstreamConfig{{Name: "up", URL: up, Paths: []string{"/"}}}
		})
		cfg := listener.DefaultConfig()
		cfg.Listen, cfg.Drain = "127.0.0.1:0", 10*time.Millisecond
		s := listener.New(r.h, cfg, nil)
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		wait(t, reached)
		if begun { // the answer has begun for the client, too
			if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		if err := wait(t, served); err == nil {
			t.Error("nothing was cut")
		}
		if got := awaitLogged(t, log); !strings.Contains(got, `failed="cut at shutdown"`) || strings.Contains(got, "detail=") {
			t.Errorf("begun %v: got %s", begun, got)
		}
		close(hold)
		conn.Close()
	}
}

// TestBrokenOff: no error has words of its own in the log.
func TestBrokenOff(t *testing.T) {
	up := &httpclient.Upstream{URL: &url.URL{Scheme: "https", Host: "host:8443"}}
	words := []string{causeUpstreamEarly}
	words = append(words, problem.Kinds()...)
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, errors.New("hush"), &net.DNSError{Err: "hush"}, errors.Join(errors.New("hush"), io.ErrShortWrite),
		context.Canceled, context.DeadlineExceeded, &net.OpError{Op: "read", Err: errors.New("hush")},
	} {
		if got := causeOfBreak(up, err); !slices.Contains(words, got) {
			t.Errorf("%v: got %q, which is no word of the table", err, got)
		}
	}
}

// hungRecall answers once its request has ended.
type hungRecall struct {
	*fakeRecall
	began chan struct{}
}

func (h hungRecall) Recall(ctx context.Context, _ recall.Request) (recall.Result, error) {
	h.began <- struct{}{}
	<-ctx.Done()
	return recall.Result{}, context.Cause(ctx)
}

// A client that leaves during a search is no failure of recall. A search that
// fails is one, and one that is late is counted as late.
func TestSearchesOfClientsThatLeave(t *testing.T) {
	began := make(chan struct{})
	r := newRig(t, func(_ *Config, d *Deps) { d.Recall = hungRecall{&fakeRecall{}, began} })
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		<-began
		leave()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+r.path, strings.NewReader(chat("user: q")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-rig")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("an answer to a client that has left")
	}
	for deadline := time.Now().Add(patience); r.served.Load() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if got := r.h.Stats().Searches(); got["failed"]+got["timeout"]+got["found"]+got["empty"] != 0 {
		t.Errorf("counted %v", got)
	}
	if got := r.h.Stats().ByStatus(); got[StatusUnavailable] != 0 {
		t.Errorf("memory is said to have failed: %v", got)
	}

	failing := newRig(t)
	failing.recall.err = errors.New("broken")
	failing.post(chat("user: q"))
	if got := failing.h.Stats().Searches(); got["failed"] != 1 {
		t.Errorf("one that failed: counted %v", got)
	}
	late := newRig(t, func(c *Config, d *Deps) {
		c.RecallDeadline, c.FirstDeadline = time.Millisecond, time.Millisecond
		d.Recall = hungRecall{&fakeRecall{}, make(chan struct{}, 1)}
	})
	late.post(chat("user: q"))
	if got := late.h.Stats().Searches(); got["timeout"] != 1 {
		t.Errorf("one that was late: counted %v", got)
	}
}

// Failures of all paths are counted, also of those that are passed on unread:
// by the upstream's status.
func TestFailuresOfAnyPath(t *testing.T) {
	r := newRig(t)
	r.answers(func(in received) (int, string, string) {
		return http.StatusServiceUnavailable, "application/json", "{}"
	})
	for _, path := range []string{r.path, "/v1/embeddings", "/v1/anything"} {
		r.postTo(path, `{}`)
	}
	r.answers(replyWith("Noted."))
	r.post(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
	got := map[string]int64{}
	r.h.Stats().Failures(got)
	for class, n := range got {
		if want := map[string]int64{"503": 3}[class]; n != want {
			t.Errorf("%s: %d, want %d", class, n, want)
		}
	}
	if got["503"] == 0 {
		t.Errorf("got %v", got)
	}
}
