package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// streaming is a chat request that asks for a stream.
func streaming(body string) string {
	return strings.Replace(body, `{"model"`, `{"stream":true,"model"`, 1)
}

const (
	strictEvent = `data: {"error":{"code":"server_error","message":"Jinja Exception: conversation roles must alternate user and assistant"}}` + "\n\n"
	lengthEvent = `data: {"error":{"message":"This model's maximum context length is 10 tokens"}}` + "\n\n"
	wordEvent   = `data: {"choices":[{"index":0,"delta":{"content":"must alternate: error in chat template"}}],"error":null}` + "\n\n"
)

// learnedPlace says whether a lesson tells that blocks stand in the user's
// message.
func learnedPlace(r *rig) bool {
	r.h.placements.mu.RLock()
	defer r.h.placements.mu.RUnlock()
	for _, lesson := range r.h.placements.lessons {
		if !lesson.inUser.IsZero() {
			return true
		}
	}
	return false
}

// A stream that begins with the refusal of its request is a refusal, whatever
// its status; one that begins otherwise is the client's as it came, after one
// request.
func TestStreamsThatRefuse(t *testing.T) {
	const done = "data: [DONE]\n\n"
	gzipped := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, s)
		_ = z.Close()
		return b.String()
	}
	for _, tt := range []struct {
		name, refusal    string
		a                api
		encoding         string
		retried, learned bool
	}{
		{name: "template", refusal: strictEvent + done, retried: true, learned: true},
		{name: "named", refusal: "event: error\n" + strictEvent, retried: true, learned: true},
		{name: "no end of the event", refusal: strings.TrimSpace(strictEvent), retried: true, learned: true},
		{name: "lines", a: apis[4], refusal: `{"error":"template error: roles must alternate"}` + "\n", retried: true, learned: true},
		{name: "encoded", encoding: "gzip", refusal: strictEvent + done, retried: true, learned: true},
		{name: "length", refusal: lengthEvent, retried: true},
		{name: "another error", refusal: `data: {"error":{"message":"out of memory"}}` + "\n\n" + done},
		{name: "words of the model", refusal: wordEvent + strictEvent + done},
		{name: "an encoding nobody knows", encoding: "x-odd", refusal: strictEvent},
		{name: "empty", refusal: ""},
	} {
		for _, own := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/own=%v", tt.name, own), func(t *testing.T) {
				a, encode := tt.a, func(s string) string { return s }
				if a.name == "" {
					a = apis[0]
				}
				if tt.encoding == "gzip" {
					encode = gzipped
				}
				r := a.rig(t, ownClient(own))
				r.encoding = tt.encoding
				contentType, fine := a.stream("fine")
				r.answers(func(got received) (int, string, string) {
					if !fence.Contains(got.body) {
						return 200, contentType + "; of=original", encode(fine)
					}
					return 200, contentType, encode(tt.refusal)
				})
				r.recall.set("fact")
				body := streaming(a.body("user: q1"))
				got := r.post(body, "Accept-Encoding", "gzip")
				want := seen{code: 200, status: StatusInjected, memories: "1", body: encode(tt.refusal)}
				requests := 1
				if tt.retried {
					want, requests = seen{code: 200, status: StatusRejected, memories: "0", body: encode(fine)}, 2
				}
				sent := r.sent()
				if original := strings.HasSuffix(got.header.Get("Content-Type"), "; of=original"); original != tt.retried {
					t.Errorf("the head is the original's: %v, want %v", original, tt.retried)
				}
				got.header = nil
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if len(sent) != requests || sent[len(sent)-1].body != body && tt.retried {
					t.Fatalf("%d requests, want %d, the original last", len(sent), requests)
				}
				if got := learnedPlace(r); got != tt.learned {
					t.Errorf("learned the place: %v, want %v", got, tt.learned)
				}
			})
		}
	}
}

// A conversation that the server does not take without a block either is the
// client's fault.
func TestStreamsThatRefuseTheOriginal(t *testing.T) {
	r := newRig(t)
	r.answers(func(received) (int, string, string) { return 200, "text/event-stream", strictEvent })
	r.recall.set("fact")
	for range 2 {
		got := r.post(streaming(chat("user: q1", "user: q2")))
		if n := len(r.sent()); n != 2 || got.status != StatusRejected || got.body != strictEvent {
			t.Errorf("status %s after %d requests: %s", got.status, n, got.body)
		}
		r.sleep(2 * time.Minute)
	}
	if n := len(r.h.placements.lessons); n != 0 {
		t.Errorf("%d lessons", n)
	}
}

// A prompt that LM Studio's context is too short for with a block goes without
// it, and that is no matter of places.
func TestStreamsTooLong(t *testing.T) {
	llm := &proxytest.LLM{Strict: proxytest.LMStudio, MaxContext: 40}
	up := httptest.NewServer(llm)
	defer up.Close()
	r := newRig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = up.URL })
	r.recall.set("fact")
	got := r.post(streaming(chat("user: q1")))
	if n := len(llm.Requests()); n != 2 || got.status != StatusRejected || !strings.Contains(got.body, "said") {
		t.Errorf("status %s after %d requests: %s", got.status, n, got.body)
	}
	if n := len(r.h.placements.lessons) + len(r.h.placements.accepted); n != 0 {
		t.Errorf("%d lessons", n)
	}
}

// Another model may be served by the name of one that took blocks, or its
// context be full: the first refusal is the client's, and the last.
func TestStreamsBecomeStrict(t *testing.T) {
	t.Run("template", func(t *testing.T) { testStreamsBecomeStrict(t, strictEvent, StatusInjected, 1) })
	t.Run("length", func(t *testing.T) { testStreamsBecomeStrict(t, lengthEvent, StatusRejected, 2) })
}

// testStreamsBecomeStrict ends with the status of a request, and how many it
// costs, after the one that was sent twice.
func testStreamsBecomeStrict(t *testing.T, refusal string, then Status, requests int) {
	r := newRig(t)
	strict := false
	r.answers(func(got received) (int, string, string) {
		if lines := roles(t, got.body); strict && len(lines) > 1 && strings.HasPrefix(lines[len(lines)-2], "user: ") {
			return 200, "text/event-stream", refusal
		}
		return 200, "text/event-stream", wordEvent
	})
	r.recall.set("fact")
	for i, want := range []struct {
		status   Status
		requests int
		body     string
	}{
		{StatusInjected, 1, wordEvent},
		{StatusInjected, 1, wordEvent},
		{StatusInjected, 1, refusal}, // from here on it is strict
		{StatusRejected, 2, wordEvent},
		{then, requests, wordEvent},
	} {
		strict = i >= 2
		got := r.post(streaming(chat(fmt.Sprint("user: q", i))))
		if n := len(r.sent()); got.status != want.status || n != want.requests || got.body != want.body {
			t.Errorf("request %d: status %s after %d requests, want %s after %d: %s", i, got.status, n, want.status, want.requests, got.body)
		}
	}
}

// begun is an exchange whose enriched request a stream answers, in a bubble.
func begun(t *testing.T) (*httpExchange, *http.Response, *io.PipeWriter) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Upstreams = []httpclient.UpstreamConfig{{Name: "mock", URL: "http://127.0.0.1:1", Paths: []string{"/"}}}
	h, err := New(cfg, Deps{Recall: &fakeRecall{}, Local: storagetest.Memory()})
	if err != nil {
		t.Fatal(err)
	}
	x := &httpExchange{exchange: exchange{
		call: call{h: h}, plan: plan{memories: 1, target: target{model: modelKey{upstream: "mock", model: "m"}}},
	}}
	body, up := io.Pipe()
	return x, &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, up
}

// The head of a stream waits for its first event as long as a refusal may take,
// no event waits for anything, and once the model is known to take a block
// there, nothing does.
func TestStreamsWaitForTheFirstEventAlone(t *testing.T) {
	type said struct {
		at   time.Duration
		text string
	}
	for _, tt := range []struct {
		name     string
		encoding string
		says     []said
		cut      bool // after that the upstream, or the client, is gone
		waits    time.Duration
		takes    bool // known before a byte is written
	}{
		{name: "at once", says: []said{{0, wordEvent}}, waits: 0, takes: true},
		{name: "soon", says: []said{{firstEventTimeout / 4, wordEvent}}, waits: firstEventTimeout / 4, takes: true},
		{name: "after comments", says: []said{{0, ": wait\n\n"}, {firstEventTimeout / 2, wordEvent}}, waits: firstEventTimeout / 2, takes: true},
		{name: "in pieces", says: []said{{0, wordEvent[:9]}, {firstEventTimeout / 2, wordEvent[9:]}}, waits: firstEventTimeout / 2, takes: true},
		{name: "late", says: []said{{time.Minute, wordEvent}}, waits: 2 * time.Second},
		{name: "half of it late", says: []said{{0, wordEvent[:9]}, {time.Minute, wordEvent[9:]}}, waits: firstEventTimeout},
		{name: "encoded", encoding: "x-odd", says: []said{{firstEventTimeout / 4, "abc"}, {firstEventTimeout / 2, "def"}}, waits: firstEventTimeout / 4},
		{name: "gone", cut: true, says: []said{{firstEventTimeout / 4, ": wait\n\n"}}, waits: firstEventTimeout / 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, resp, up := begun(t)
				if tt.encoding != "" {
					resp.Header.Set("Content-Encoding", tt.encoding)
				}
				began, whole := time.Now(), ""
				go func() {
					for _, s := range tt.says {
						time.Sleep(s.at - time.Since(began))
						_, _ = io.WriteString(up, s.text)
					}
					if tt.cut {
						_ = up.CloseWithError(context.Canceled)
					}
				}()
				for _, s := range tt.says {
					whole += s.text
				}
				got := x.retryRefused(resp)
				if waited := time.Since(began); waited != tt.waits {
					t.Errorf("waited %s, want %s", waited, tt.waits)
				}
				if takes := x.h.placements.isAccepted(x.modelPlacement()); takes != tt.takes {
					t.Errorf("known to take blocks: %v, want %v", takes, tt.takes)
				}
				read := ""
				for buf := make([]byte, smallBuffer); read != whole; {
					n, err := got.Body.Read(buf)
					if err != nil {
						t.Fatal(err)
					}
					read += string(buf[:n])
					if x.first.expect != expectNothing {
						x.learnFirstEvent(buf[:n])
					}
				}
				last := max(tt.waits, tt.says[len(tt.says)-1].at)
				if waited := time.Since(began); waited != last {
					t.Errorf("the event was there after %s, want %s", waited, last)
				}
				if takes := x.h.placements.isAccepted(x.modelPlacement()); takes != (!tt.cut && tt.encoding == "") {
					t.Errorf("in the end known to take blocks: %v", takes)
				}
				_, next, _ := begun(t)
				began = time.Now()
				if x.h.placements.isAccepted(x.modelPlacement()) && (x.retryRefused(next) != next || time.Since(began) != 0) {
					t.Error("the next stream was looked at, too")
				}
				_ = up.Close()
				_ = got.Body.Close()
				synctest.Wait()
			})
		})
	}
}

// Where models are known, streams cost nothing.
func TestStreamsOfKnownModels(t *testing.T) {
	x, resp, _ := begun(t)
	x.h.placements.noteAccepted(x.modelPlacement())
	p := []byte(`data: {"id":"c","error":null,"choices":[]}` + "\n\n")
	if n := testing.AllocsPerRun(100, func() {
		if x.retryRefused(resp) != resp {
			t.Error("looked at")
		}
		x.learnFirstEvent(p)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for i := range 2 * maxLessons {
		x.h.placements.noteAccepted(modelPlacement{modelKey{model: fmt.Sprint(i)}, dialect.BeforeUser})
	}
	if n := len(x.h.placements.accepted); n != maxLessons {
		t.Errorf("%d models are known, want %d", n, maxLessons)
	}
}

// The first event shows in the first bytes of a stream that is encoded, if the
// upstream means it to be read.
func TestStreamsEncoded(t *testing.T) {
	type writer interface {
		io.Writer
		Flush() error
	}
	for name, open := range map[string]func(io.Writer) writer{
		"gzip":    func(w io.Writer) writer { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) writer { return zlib.NewWriter(w) },
		"br":      func(w io.Writer) writer { return brotli.NewWriter(w) },
		"zstd":    func(w io.Writer) writer { z, _ := zstd.NewWriter(w); return z },
	} {
		x, resp, _ := begun(t)
		resp.Header.Set("Content-Encoding", name)
		var b bytes.Buffer
		z := open(&b)
		_, _ = io.WriteString(z, strictEvent)
		_ = z.Flush()
		if got := x.readFirstEvent(resp, b.Bytes(), false); got != eventTemplate {
			t.Errorf("%s: got %d", name, got)
		}
		for i := range b.Len() {
			if got := x.readFirstEvent(resp, b.Bytes()[:i], false); got != eventIncomplete && got != eventTemplate {
				t.Errorf("%s: %d of %d bytes tell %d", name, i, b.Len(), got)
			}
		}
	}
}

// trailingBody ends with trailers, as the bodies of both clients do: whoever
// reads the end writes them.
type trailingBody struct {
	resp *http.Response
	text string
	end  chan struct{}
	told chan struct{} // closed when the trailers are written
}

func (b *trailingBody) Read(p []byte) (int, error) {
	if n := copy(p, b.text); n > 0 {
		b.text = b.text[n:]
		return n, nil
	}
	<-b.end
	b.resp.Trailer.Set("X-Cost", "1")
	close(b.told)
	return 0, io.EOF
}

func (b *trailingBody) Close() error { return nil }

// What is read ahead of the client does not write to what the client's side
// reads meanwhile.
func TestStreamsReadAheadKeepTheirTrailers(t *testing.T) {
	resp := &http.Response{Trailer: http.Header{"X-Cost": nil}}
	body := &trailingBody{resp: resp, text: wordEvent, end: make(chan struct{}), told: make(chan struct{})}
	resp.Body = body
	whole, _, _ := peekResponse(nil, resp, patience, func([]byte) bool { return true })
	close(body.end)
	wait(t, body.told)
	if got := whole.Trailer["X-Cost"]; got != nil {
		t.Errorf("before the body was read the trailers say %q", got)
	}
	_, _ = io.Copy(io.Discard, whole.Body)
	if got := whole.Trailer.Get("X-Cost"); got != "1" {
		t.Errorf("at its end they say %q", got)
	}
}

// An original that begins late does not keep the client waiting, and teaches
// when it has begun. Its trailers are passed on.
func TestStreamsOfTheOriginalMayBeLate(t *testing.T) {
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own=%v", own), func(t *testing.T) {
			t.Parallel()
			const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
			chunk := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }
			seen := make(chan struct{})
			addr := proxytest.ServeConns(t, func(_ int, conn net.Conn, br *bufio.Reader) {
				in, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				if body, _ := io.ReadAll(in.Body); fence.Contains(string(body)) {
					_, _ = io.WriteString(conn, head+"\r\n"+chunk(strictEvent)+"0\r\n\r\n")
					return
				}
				_, _ = io.WriteString(conn, head+"Trailer: X-Cost\r\n\r\n")
				<-seen
				_, _ = io.WriteString(conn, chunk(wordEvent)+"0\r\nX-Cost: 1\r\n\r\n")
			})
			r := newRig(t, ownClient(own), func(c *Config, _ *Deps) { c.Upstreams[0].URL = "http://" + addr })
			r.recall.set("fact")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+r.path, strings.NewReader(streaming(chat("user: q1"))))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer sk-rig")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got := resp.Header.Get(headerStatus); got != string(StatusRejected) || learnedPlace(r) {
				t.Errorf("before it begins: status %s, learned the place: %v", got, learnedPlace(r))
			}
			close(seen)
			body, err := io.ReadAll(resp.Body)
			if err != nil || string(body) != wordEvent || resp.Trailer.Get("X-Cost") != "1" {
				t.Errorf("got %q, trailers %v, %v", body, resp.Trailer, err)
			}
			if !learnedPlace(r) {
				t.Error("nothing was learned")
			}
		})
	}
}
