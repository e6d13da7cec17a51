package embed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/recall/breaker"
	"github.com/remora-proxy/remora/redact"
)

func TestDocumentsKeepTheirOrder(t *testing.T) {
	for _, encoding := range []Encoding{EncodingFloat, EncodingBase64} {
		s := newServer(t)
		cfg := config(s)
		cfg.BatchTexts, cfg.Encoding, cfg.DocumentPrefix, cfg.Key, cfg.Dimensions = 3, encoding, "doc: ", "s3cret", 8
		cfg.URL += "/v1/"
		c := newClient(t, cfg)
		var texts []string
		var want [][]float32
		for i := range 8 {
			texts = append(texts, fmt.Sprint("text ", i))
			want = append(want, unitOf("doc: "+texts[i]))
		}
		got, err := c.Documents(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", encoding, d)
		}
		asked := s.requests()
		if len(asked) != 3 {
			t.Errorf("got %d requests, want 3 of at most 3 texts", len(asked))
		}
		for i, q := range asked {
			if len(q.Input) > 3 || q.Model != "m" || q.Dimensions != 8 || (q.Encoding == EncodingBase64) != (encoding == EncodingBase64) {
				t.Errorf("request %d: %+v", i, q)
			}
			if s.keys[i] != "Bearer s3cret" || s.paths[i] != "/v1/embeddings" {
				t.Errorf("request %d: key %q at %q", i, s.keys[i], s.paths[i])
			}
		}
	}
}

func TestQueriesAreCached(t *testing.T) {
	s := newServer(t)
	cfg := config(s)
	cfg.CacheQueries, cfg.QueryPrefix = 2, "q: "
	c := newClient(t, cfg)
	for _, q := range []string{"a", "b", "a", "c", "a", "b"} { // c evicts b
		v, err := c.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(unitOf("q: "+q), v); d != "" {
			t.Errorf("%s: %s", q, d)
		}
	}
	var asked []string
	for _, q := range s.requests() {
		asked = append(asked, q.Input...)
	}
	if d := cmp.Diff([]string{"q: a", "q: b", "q: c", "q: b"}, asked); d != "" {
		t.Error(d)
	}
	if got := c.Stats(); got.Hits != 2 {
		t.Errorf("%+v", got)
	}
}

func TestResponsesAreValidated(t *testing.T) {
	good := item(0, vectorOf("x", 8), "")
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, question) bool
		want   error
	}{
		{"no JSON", body("<html>"), ErrResponse},
		{"no data", body(`{"error":"quota"}`), ErrResponse},
		{"too few", body(`{"data":[]}`), ErrResponse},
		{"too many", body(`{"data":[%s,%s]}`, good, good), ErrResponse},
		{"index beyond", body(`{"data":[%s]}`, item(1, vectorOf("x", 8), "")), ErrResponse},
		{"NaN", body(`{"data":[{"index":0,"embedding":[1,NaN,0,0,0,0,0,0]}]}`), ErrResponse},
		{"infinite", body(`{"data":[{"index":0,"embedding":[1,-Infinity,0,0,0,0,0,0]}]}`), ErrResponse},
		{"too large", body(`{"data":[{"index":0,"embedding":[1e300,0,0,0,0,0,0,0]}]}`), ErrResponse},
		{"NaN in base64", body(`{"data":[{"index":0,"embedding":"AADAfwAAgD8="}]}`), ErrResponse},
		{"zero", body(`{"data":[{"index":0,"embedding":[0,0,0,0,0,0,0,0]}]}`), ErrResponse},
		{"null", body(`{"data":[{"index":0,"embedding":[1,null,0,0,0,0,0,0]}]}`), ErrResponse},
		{"empty", body(`{"data":[{"index":0,"embedding":[]}]}`), ErrResponse},
		{"odd base64", body(`{"data":[{"index":0,"embedding":"AAAA"}]}`), ErrResponse},
		{"words", body(`{"data":[{"index":0,"embedding":"not base64!"}]}`), ErrResponse},
		{"other dimension", body(`{"data":[%s]}`, item(0, vectorOf("x", 9), "")), ErrDimension},
		{"endless", func(w http.ResponseWriter, _ question) bool {
			for range 1 << 10 {
				if _, err := w.Write(bytes.Repeat([]byte("["), 1<<10)); err != nil {
					break
				}
			}
			return true
		}, ErrResponse},
		{"redirect", status(http.StatusTemporaryRedirect, "Location", "/v1/embeddings"), nil},
		{"unauthorized", status(http.StatusUnauthorized), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			client := newClient(t, config(s))
			if _, err := client.Query(t.Context(), "first"); err != nil { // sets the dimension
				t.Fatal(err)
			}
			s.behave(c.answer)
			v, err := client.Query(t.Context(), "a private text")
			if err == nil || v != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, %v, want %v", v, err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "private") || strings.Contains(err.Error(), "echo")) {
				t.Errorf("the error reveals content: %v", err)
			}
			if n := len(s.requests()); n != 2 {
				t.Errorf("got %d requests, want 2", n)
			}
		})
	}
}

func TestBadDocumentDoesNotAffectOthers(t *testing.T) {
	for name, bad := range map[string]func(w http.ResponseWriter, q question) bool{
		"refused": func(w http.ResponseWriter, q question) bool {
			return slices.Contains(q.Input, "bad") && status(http.StatusBadRequest)(w, q)
		},
		"NaN": func(w http.ResponseWriter, q question) bool {
			var data []string
			for i, text := range q.Input {
				if text == "bad" {
					data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[NaN,1,1,1,1,1,1,1]}`, i))
				} else {
					data = append(data, item(i, vectorOf(text, 8), ""))
				}
			}
			fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
			return true
		},
	} {
		s := newServer(t)
		s.behave(bad)
		c := newClient(t, config(s))
		got, err := c.Documents(t.Context(), []string{"a", "b", "bad", "c", "d"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff([][]float32{unitOf("a"), unitOf("b"), nil, unitOf("c"), unitOf("d")}, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if st := c.Stats(); st.Refused != 1 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

func TestDocumentsAreRetried(t *testing.T) {
	s := newServer(t)
	n := 0
	s.behave(func(w http.ResponseWriter, q question) bool {
		n++
		return n == 1 && status(http.StatusServiceUnavailable)(w, q)
	})
	c := newClient(t, config(s))
	if _, err := c.Documents(t.Context(), []string{"a"}); err != nil {
		t.Error(err)
	}
	if got := c.Stats().Retried; got != 1 {
		t.Errorf("retried %d times, want once", got)
	}
	s.behave(status(http.StatusForbidden))
	if v, err := c.Documents(t.Context(), []string{"b"}); err == nil || v != nil || c.Stats().Retried != 1 {
		t.Errorf("got %v, %v after %d retries, want an error at once", v, err, c.Stats().Retried)
	}
	s.behave(body(`{"data":[%s,%s]}`, item(0, make([]float32, 8), ""), item(1, make([]float32, 8), "")))
	if _, err := c.Documents(t.Context(), []string{"b", "c"}); !errors.Is(err, ErrResponse) {
		t.Errorf("nothing but zeros: got %v, want %v", err, ErrResponse)
	}
}

// A server that refuses every text, as many do if they lack the model or the
// dimension, refuses none in particular: that must be an error, and no text
// counts as refused. Nor is each text sent by itself.
func TestServerThatRefusesEverything(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, q question) bool{
		"400": status(http.StatusBadRequest),
		"422": status(http.StatusUnprocessableEntity),
		"NaN": func(w http.ResponseWriter, q question) bool {
			return len(q.Input) == 1 && body(`{"data":[{"index":0,"embedding":[NaN,1]}]}`)(w, q)
		},
	} {
		for _, texts := range [][]string{{"a"}, {"a", "b", "c", "d", "e", "f", "g", "h"}} {
			if name == "NaN" && len(texts) > 1 {
				continue
			}
			s := newServer(t)
			s.behave(answer)
			c := newClient(t, config(s))
			if v, err := c.Documents(t.Context(), texts); err == nil || v != nil {
				t.Errorf("%s, %d texts: got %v, %v, want an error", name, len(texts), v, err)
			}
			if st := c.Stats(); st.Refused != 0 {
				t.Errorf("%s, %d texts: %d count as refused", name, len(texts), st.Refused)
			}
			if n := len(s.requests()); n != 2 {
				t.Errorf("%s, %d texts: got %d requests, want 2: the batch and a plain text", name, len(texts), n)
			}
			s.behave(nil)
			if v, err := c.Documents(t.Context(), texts); err != nil || v[0] == nil {
				t.Errorf("%s, %d texts, after the server recovered: %v", name, len(texts), err)
			}
		}
	}
}

// roundTripper replaces the network in tests of time.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answering(code int, header http.Header) *http.Response {
	return &http.Response{StatusCode: code, Header: header, Body: http.NoBody}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.URL, cfg.Model, cfg.Retries = "http://nowhere", "m", 2
		c := newClient(t, cfg)
		var at []time.Duration
		start := time.Now()
		c.http.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Since(start))
			return answering(http.StatusTooManyRequests, http.Header{"Retry-After": {"20"}}), nil
		})
		_, err := c.Documents(t.Context(), []string{"a"})
		if s, ok := errors.AsType[*statusError](err); !ok || s.code != http.StatusTooManyRequests {
			t.Errorf("got %v, want the status", err)
		}
		if len(at) != 3 || at[1] != 20*time.Second || at[2] != 40*time.Second {
			t.Errorf("attempts at %v, want one every 20 s", at)
		}
	})
}

// A text that the server refuses says nothing about the server.
func TestRefusedTextsDoNotOpenTheBreaker(t *testing.T) {
	s := newServer(t)
	s.behave(func(w http.ResponseWriter, q question) bool {
		return len(q.Input[0]) > 1000 && status(http.StatusRequestEntityTooLarge)(w, q)
	})
	c := newClient(t, config(s))
	for i := range 10 {
		if _, err := c.Query(t.Context(), strings.Repeat("long ", 300+i)); err == nil {
			t.Fatal("got a vector for a text that is too long")
		}
	}
	if _, err := c.Query(t.Context(), "a short question"); err != nil {
		t.Errorf("after ten refused texts: %v", err)
	}
}

// A server that is dead, or always late, stops costing time, and is used again
// once it is well.
func TestBreaker(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.URL, cfg.Model, cfg.CacheQueries = "http://nowhere", "m", 0
			var log bytes.Buffer
			c, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var sent atomic.Int64
			var well atomic.Bool
			c.http.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				sent.Add(1)
				switch {
				case well.Load():
				case late:
					time.Sleep(300 * time.Millisecond)
				default:
					return nil, errors.New("connection refused")
				}
				answer := answering(http.StatusOK, nil)
				answer.Body = readCloser{strings.NewReader(`{"data":[{"index":0,"embedding":[1,2]}]}`)}
				return answer, nil
			})
			ask := func(text string) (time.Duration, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				start := time.Now()
				_, err := c.Query(ctx, text)
				return time.Since(start), err
			}
			for i := range breaker.FailuresToOpen {
				if _, err := ask(fmt.Sprint(i)); err == nil {
					t.Fatal("a dead server answered")
				}
			}
			for i := range 20 {
				if took, err := ask(fmt.Sprint("open ", i)); !errors.Is(err, ErrOpen) || took != 0 {
					t.Fatalf("late %v: got %v after %v, want %v at once", late, err, took, ErrOpen)
				}
			}
			if sent.Load() != breaker.FailuresToOpen || !c.Stats().Open {
				t.Errorf("late %v: sent %d requests, want %d", late, sent.Load(), breaker.FailuresToOpen)
			}
			time.Sleep(minCooldown)
			for i := range 3 { // the first is the probe, and it fails
				if took, err := ask(fmt.Sprint("probe ", i)); !errors.Is(err, ErrOpen) || took != 0 {
					t.Errorf("late %v: got %v after %v, want %v at once", late, err, took, ErrOpen)
				}
			}
			time.Sleep(minCooldown) // the second cooldown is twice as long
			if _, err := ask("still"); !errors.Is(err, ErrOpen) || sent.Load() != breaker.FailuresToOpen+1 {
				t.Errorf("late %v: got %v after %d requests, want %d", late, err, sent.Load(), breaker.FailuresToOpen+1)
			}
			well.Store(true)
			time.Sleep(minCooldown + time.Second) // the late probe ended later
			_, _ = ask("probe that succeeds")
			synctest.Wait()
			if _, err := ask("again"); err != nil || c.Stats().Open {
				t.Errorf("late %v: got %v, want an answer", late, err)
			}
			if got := strings.Count(log.String(), "\n"); got != 2 || strings.Contains(log.String(), "probe") {
				t.Errorf("want one line at the opening and one at the closing: %s", &log)
			}
		})
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// A response that comes too late serves the next caller.
func TestLateResponsesAreCached(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	s.behave(func(http.ResponseWriter, question) bool { <-gate; return false })
	c := newClient(t, config(s))
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() { _, err := c.Query(ctx, "q"); errs <- err }()
	for len(s.requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(gate)
	if _, err := c.Query(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

func TestQueriesInFlightAreLimited(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	s.behave(func(http.ResponseWriter, question) bool { <-gate; return false })
	c := newClient(t, config(s))
	errs := make(chan error, maxCalls)
	for i := range maxCalls {
		go func() { _, err := c.Query(t.Context(), fmt.Sprint(i)); errs <- err }()
	}
	for len(s.requests()) < maxCalls {
		time.Sleep(time.Millisecond)
	}
	if _, err := c.Query(t.Context(), "one more"); !errors.Is(err, ErrOpen) {
		t.Errorf("got %v, want %v", err, ErrOpen)
	}
	close(gate)
	for range maxCalls {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestCloseCancelsRequests(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	defer close(gate)
	s.behave(func(http.ResponseWriter, question) bool { <-gate; return true })
	c := newClient(t, config(s))
	errs := make(chan error, 2)
	go func() { _, err := c.Query(t.Context(), "q"); errs <- err }()
	go func() { _, err := c.Documents(t.Context(), []string{"d"}); errs <- err }()
	for len(s.requests()) < 2 {
		time.Sleep(time.Millisecond)
	}
	c.Close()
	for range 2 {
		if err := <-errs; err == nil {
			t.Error("want an error")
		}
	}
	if _, err := c.Query(t.Context(), "q"); err == nil {
		t.Error("a closed client answers")
	}
}

func TestValidate(t *testing.T) {
	bad := Config{URL: "https://user:pass@host/?q=1", Key: redact.Secret("a\nb"), Dimensions: -1, Encoding: "hex"}
	err := bad.Validate()
	for _, key := range []string{"url: must not hold credentials", "url: must have neither", "model:", "dimensions:", "encoding:", "key:",
		"batchTexts:", "concurrency:", "queryTimeout:", "timeout:"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("got %v, want something about %s", err, key)
		}
	}
	if strings.Contains(err.Error(), "pass") {
		t.Errorf("the error reveals the password: %v", err)
	}
	for _, u := range []string{"ftp://host", "host:80", "/v1", "http://"} {
		if (Config{URL: u}).Validate() == nil {
			t.Errorf("%s is accepted as a URL", u)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("without a URL: %v", err)
	}
}

func TestModelNamesAllThatMatters(t *testing.T) {
	cfg := DefaultConfig()
	cfg.URL, cfg.Model = "http://h", "m"
	seen := map[string]bool{}
	for _, change := range []func(*Config){
		func(*Config) {}, func(c *Config) { c.Model = "n" }, func(c *Config) { c.Dimensions = 8 },
		func(c *Config) { c.DocumentPrefix = "d: " }, func(c *Config) { c.QueryPrefix = "d: " },
	} {
		other := cfg
		change(&other)
		seen[newClient(t, other).Model()] = true
	}
	if len(seen) != 5 {
		t.Errorf("got %v, want five names", seen)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1,2,3]}]}`), 1)
	f.Add([]byte(`{"data":[{"index":1,"embedding":"AACAPw=="},{"index":0,"embedding":[NaN]}]}`), 2)
	f.Fuzz(func(t *testing.T, content []byte, n int) {
		n = max(min(n, 8), 0)
		vectors, dimension, err := decode(content, n)
		if err != nil {
			return
		}
		if len(vectors) != n {
			t.Fatalf("%d vectors for %d texts", len(vectors), n)
		}
		for _, v := range vectors {
			if v == nil {
				continue
			}
			sum := 0.0
			for _, x := range v {
				sum += float64(x) * float64(x)
			}
			if len(v) != dimension || !(sum > 0.99 && sum < 1.01) {
				t.Fatalf("dimension %d of %d, length %f", len(v), dimension, sum)
			}
		}
	})
}

// TestErrorsQuoteNothing uses a server that returns all that it was sent, in
// what is not HTTP.
func TestErrorsQuoteNothing(t *testing.T) {
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
			asked, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				body, _ := io.ReadAll(asked.Body)
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s %s\r\n\r\n", asked.Header.Get("Authorization"), body)
			}
			conn.Close()
		}
	}()
	var log bytes.Buffer
	cfg := DefaultConfig()
	cfg.URL, cfg.Model, cfg.Key, cfg.Retries = "http://"+l.Addr().String(), "m", "sk-canary", 0
	c, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Documents(t.Context(), []string{"a quince"})
	said := fmt.Sprint(err)
	for range breaker.FailuresToOpen {
		_, err = c.Query(t.Context(), "a quince")
		said += fmt.Sprint(err)
	}
	c.Close() // the last call has logged
	if said += log.String(); err == nil || strings.Contains(said, "canary") || strings.Contains(said, "quince") {
		t.Errorf("errors and log: %s", said)
	}
}
