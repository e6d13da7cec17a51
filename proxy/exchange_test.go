package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/telemetry"
)

// encoders write every content encoding that is read here.
var encoders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd":    func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
}

func encode(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	if encoding == "raw deflate" {
		w, _ = flate.NewWriter(&b, flate.BestSpeed)
	} else {
		w = encoders[encoding](&b)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEncodedRequests(t *testing.T) { inEach(t, testEncodedRequests) }

func testEncodedRequests(t *testing.T, a api) {
	for _, encoding := range []string{"gzip", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			r := a.rig(t)
			plain := a.body("user: q1")
			body := encode(t, encoding, plain)
			got := r.post(body, "Content-Encoding", encoding)
			up := r.one()
			if got.status != StatusEmpty || up.body != body || up.header.Get("Content-Encoding") != encoding {
				t.Errorf("status %s; want empty and the encoded bytes as they came", got.status)
			}
			r.recall.set("fact")
			got = r.post(encode(t, encoding, a.body("user: q2")), "Content-Encoding", encoding)
			up = r.one()
			if diff := cmp.Diff([]string{"user: [fact]", "user: q2"}, a.lines(t, up.body)); diff != "" || got.status != StatusInjected {
				t.Errorf("status %s, (-want +got):\n%s", got.status, diff)
			}
			if _, ok := up.header["Content-Encoding"]; ok {
				t.Error("the decoded body says that it is encoded")
			}
			// Refused: the original goes out encoded again.
			r.answers(func(got received) (int, string, string) {
				if got.header.Get("Content-Encoding") == "" {
					return 400, "application/json", `{"error":{"message":"roles must alternate"}}`
				}
				return a.replyWith("fine")(got)
			})
			body = encode(t, encoding, a.body("user: q3"))
			got = r.post(body, "Content-Encoding", encoding)
			if up := r.sent(); got.code != 200 || len(up) != 2 || up[1].body != body {
				t.Errorf("code %d after %d requests; want the encoded original as the second", got.code, len(up))
			}
		})
	}
}

// A small body that decodes to a huge one is not read.
func TestDecompressionBomb(t *testing.T) {
	r := newRig(t, func(c *Config, _ *Deps) { c.Limits.BodyBytes = 1 << 20 })
	r.recall.set("must not show")
	for _, encoding := range []string{"gzip", "zstd"} {
		body := encode(t, encoding, chat("user: "+strings.Repeat("x", 8<<20)))
		if got := r.post(body, "Content-Encoding", encoding); got.status != StatusTooLarge || r.one().body != body {
			t.Errorf("%s: status %s, want too-large with the bytes unchanged", encoding, got.status)
		}
	}
}

func TestEncodedAnswers(t *testing.T) { inEach(t, testEncodedAnswers) }

func testEncodedAnswers(t *testing.T, a api) {
	plain := a.answer("resp_1", "the answer")
	for _, encoding := range []string{"gzip", "deflate", "raw deflate", "br", "zstd", "unknown"} {
		t.Run(encoding, func(t *testing.T) {
			sent := plain
			if encoding != "unknown" {
				sent = encode(t, encoding, plain)
			}
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", strings.TrimPrefix(encoding, "raw "))
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, sent)
			}))
			defer up.Close()
			r := a.rig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = up.URL })
			got := r.post(a.body("user: q"), "Accept-Encoding", "br, gzip")
			if got.body != sent {
				t.Error("the client did not get the upstream's bytes")
			}
			turns := r.turns()
			if encoding == "unknown" {
				if n := r.h.Stats().Undecoded.Load(); n != 1 || len(turns) != 0 {
					t.Errorf("undecoded %d, persisted %d, want 1 and 0", n, len(turns))
				}
				return
			}
			if len(turns) != 1 || turns[0].Messages[1].Text != "the answer" {
				t.Errorf("persisted %+v, want the decoded answer", turns)
			}
		})
	}
}

func TestLargeAnswersAreNotRemembered(t *testing.T) { inEach(t, testLargeAnswersAreNotRemembered) }

func testLargeAnswersAreNotRemembered(t *testing.T, a api) {
	for _, tt := range []struct {
		name   string
		change rigOption
	}{
		{"one", func(c *Config, _ *Deps) { c.Limits.TeeBytes = 1 << 10 }},
		{"all", func(c *Config, _ *Deps) { c.Limits.TeeBytes = 8 << 10; c.Limits.TeesBytes = 8 << 10 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := a.rig(t, tt.change)
			text := strings.Repeat("long ", 4000)
			r.answers(a.replyWith(text))
			if got := r.post(a.body("user: q")); !strings.Contains(got.body, text) {
				t.Error("the client's answer was cut")
			}
			if n := len(r.turns()); n != 0 || r.h.Stats().TeeSkipped.Load() != 1 {
				t.Errorf("persisted %d, skipped %d, want 0 and 1", n, r.h.Stats().TeeSkipped.Load())
			}
		})
	}
}

// TestCopiesShareABudget: while the copies of others take limits.teesBytes an
// answer is not remembered, and afterwards the next is.
func TestCopiesShareABudget(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config, _ *Deps) { c.Limits.TeeBytes, c.Limits.TeesBytes = 64<<10, 64<<10 })
	r.answers(replyWith(strings.Repeat("long ", 1000)))
	if !r.h.tees.acquire(60 << 10) {
		t.Fatal("the budget is taken")
	}
	r.posted++ // and not by post, which waits until all is given back
	resp, err := http.Post(r.url+r.path, "application/json", strings.NewReader(chat("user: one")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for deadline := time.Now().Add(patience); r.h.Stats().TeeSkipped.Load() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	r.h.tees.release(60 << 10)
	if n := len(r.turns()); n != 0 || r.h.Stats().TeeSkipped.Load() != 1 {
		t.Errorf("beyond the budget: persisted %d, skipped %d", n, r.h.Stats().TeeSkipped.Load())
	}
	r.post(chat("user: two"))
	if n := len(r.turns()); n != 1 || r.h.Stats().TeeSkipped.Load() != 1 {
		t.Errorf("within it: persisted %d, skipped %d", n, r.h.Stats().TeeSkipped.Load())
	}
	if !r.h.tees.acquire(64 << 10) {
		t.Error("not all of the budget is given back")
	}
}

func TestStreamedAnswerIsPersisted(t *testing.T) { inEach(t, testStreamedAnswerIsPersisted) }

func testStreamedAnswerIsPersisted(t *testing.T, a api) {
	r := a.rig(t)
	contentType, events := a.stream("Hello")
	for _, tt := range []struct {
		body string
		want []persist.Message
	}{
		{events, []persist.Message{{Role: "user", Text: "q"}, {Role: "assistant", Text: "Hello"}}},
		{events[:90], nil},
	} {
		r.answers(func(received) (int, string, string) { return 200, contentType, tt.body })
		if got := r.post(a.body("user: q")); got.body != tt.body {
			t.Errorf("client got %q, want %q", got.body, tt.body)
		}
		var got []persist.Message
		for _, turn := range r.turns() {
			for _, m := range turn.Messages {
				m.Time = 0
				got = append(got, m)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("turn (-want +got):\n%s", diff)
		}
	}
}

func TestQueueFullIsCounted(t *testing.T) {
	r := newRig(t)
	r.persist.err = persist.ErrFull
	if got := r.post(chat("user: q")); got.code != 200 {
		t.Errorf("code %d, want 200", got.code)
	}
	r.settle()
	if n := r.h.Stats().TurnsLost.Load(); n != 1 {
		t.Errorf("lost %d turns, want 1", n)
	}
}

func TestStatusEverywhere(t *testing.T) {
	r := newRig(t)
	if got := r.postTo("/v1/embeddings", `{"input":"x"}`); got.status != StatusUnsupported || got.memories != "0" {
		t.Errorf("status %s, memories %q", got.status, got.memories)
	}
	resp, err := http.Get(r.url + listener.LivePath)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("live path: %v", err)
	}
	_ = resp.Body.Close()
	if n := len(r.sent()); n != 1 {
		t.Errorf("upstream got %d requests, want the first only", n)
	}
	if got := r.h.Stats().ByStatus(); got[StatusUnsupported] != 1 {
		t.Errorf("counted %v, want one unsupported", got)
	}
	gone := newRig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = "http://127.0.0.1:1" })
	got := gone.post(chat("user: q"))
	if got.code != 502 || got.status != StatusEmpty || !strings.Contains(got.body, "127.0.0.1:1") || strings.Contains(got.body, "sk-rig") {
		t.Errorf("code %d, status %s, body %s; want a 502 that names the host", got.code, got.status, got.body)
	}
}

func TestExchangeSpan(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	defer func() { _ = tp.Shutdown(context.Background()) }()
	r := newRig(t, func(_ *Config, d *Deps) { d.Tracer = tp })
	r.recall.set("a private fact")
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.post(chat("user: a private question"), "Traceparent", parent, identity.HeaderUser, "private-user")
	up := r.one()
	r.settle()
	spans := exporter.GetSpans()
	if len(spans) != 1 {
		t.Fatalf("%d spans, want 1", len(spans))
	}
	s := spans[0]
	if s.Name != "chat m" || s.SpanKind != trace.SpanKindClient || s.Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("span %q of kind %v under %s", s.Name, s.SpanKind, s.Parent.SpanID())
	}
	if want := "00-0af7651916cd43dd8448eb211c80319c-" + s.SpanContext.SpanID().String() + "-01"; up.header.Get("Traceparent") != want {
		t.Errorf("upstream got traceparent %s, want %s", up.header.Get("Traceparent"), want)
	}
	got := map[attribute.Key]string{}
	for _, a := range s.Attributes {
		got[a.Key] = a.Value.String()
	}
	host := got[telemetry.AttrServerAddress]
	delete(got, telemetry.AttrServerPort)
	want := map[attribute.Key]string{
		telemetry.AttrOperation: "chat", telemetry.AttrProvider: "mock", telemetry.AttrServerAddress: host, telemetry.AttrModel: "m", telemetry.AttrResponseModel: "m",
		telemetry.AttrResponseID: "c1", telemetry.AttrFinishReasons: `["stop"]`, telemetry.AttrInputTokens: "7", telemetry.AttrOutputTokens: "2",
		telemetry.AttrHTTPStatus: "200", telemetry.AttrStatus: "injected", telemetry.AttrMemories: "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	for k, v := range got {
		if strings.Contains(v, "private") {
			t.Errorf("%s holds content", k)
		}
	}

	// A request without a model has no name to show.
	exporter.Reset()
	r.post(`{"messages":[{"role":"user","content":"q3"}]}`)
	r.one()
	r.settle()
	for _, s := range exporter.GetSpans() {
		if s.Name != "chat" {
			t.Errorf("span %q without a model", s.Name)
		}
		for _, a := range s.Attributes {
			if a.Key == telemetry.AttrModel {
				t.Error("a model that was not named")
			}
		}
	}

	// No header is added that the client did not send.
	r.post(chat("user: q2"))
	if up := r.one(); up.header.Get("Traceparent") != "" {
		t.Error("a traceparent was added")
	}
	untraced := newRig(t)
	untraced.post(chat("user: q"), "Traceparent", parent)
	if up := untraced.one(); up.header.Get("Traceparent") != parent {
		t.Errorf("upstream got traceparent %q, want the client's", up.header.Get("Traceparent"))
	}
}

// Whoever signs a body gets it through as it is.
func TestSignedBodiesStayAsTheyAre(t *testing.T) { inEach(t, testSignedBodiesStayAsTheyAre) }

func testSignedBodiesStayAsTheyAre(t *testing.T, a api) {
	for _, head := range [][]string{
		{"X-Amz-Content-Sha256", "e3b0"}, {"Content-Md5", "x"}, {"Digest", "sha-256=x"}, {"Content-Digest", "x"}, {"Signature-Input", "x"},
	} {
		r := a.rig(t)
		r.recall.set("fact")
		body := a.body("user: q")
		if got := r.post(body, head...); got.status != StatusUnsupported || r.one().body != body {
			t.Errorf("%s: status %s, want unsupported with the body unchanged", head[0], got.status)
		}
	}
}

// llama.cpp and others answer 500 to a prompt that is too long.
func TestTooLongAs500(t *testing.T) {
	r := newRig(t)
	r.recall.set("fact")
	r.answers(func(got received) (int, string, string) {
		if fence.Contains(got.body) {
			return 500, "application/json", `{"error":{"code":500,"message":"the request exceeds the available context size"}}`
		}
		return replyWith("fine")(got)
	})
	if got := r.post(chat("user: q")); got.code != 200 || got.status != StatusRejected {
		t.Errorf("code %d, status %s, want 200, rejected", got.code, got.status)
	}
}

// A client that has read the stream's last event may hang up before the
// upstream does.
func TestHangUpAfterDone(t *testing.T) { inEach(t, testHangUpAfterDone) }

func testHangUpAfterDone(t *testing.T, a api) {
	contentType, whole := a.stream("Hello")
	for _, tt := range []struct {
		events string
		want   int
	}{{whole, 1}, {beforeEnd(whole), 0}} {
		gone := make(chan struct{})
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, tt.events)
			w.(http.Flusher).Flush()
			<-req.Context().Done()
			close(gone)
		}))
		r := a.rig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = up.URL })
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", r.url+r.path, strings.NewReader(a.body("user: q")))
		if err != nil {
			t.Fatal(err)
		}
		r.posted++
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, len(tt.events))); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-gone
		if n := len(r.turns()); n != tt.want {
			t.Errorf("after %q: persisted %d turns, want %d", tt.events, n, tt.want)
		}
		up.Close()
	}
}

// The harness's own message after the human's is not what was said.
func TestHarnessMessageAfterTheHumans(t *testing.T) { inEach(t, testHarnessMessageAfterTheHumans) }

func testHarnessMessageAfterTheHumans(t *testing.T, a api) {
	r := a.rig(t)
	r.post(a.body("user: where is the key?", "user: <system-reminder>today is Friday</system-reminder>"))
	turns := r.turns()
	if len(turns) != 1 || turns[0].Messages[0].Text != "where is the key?" {
		t.Errorf("persisted %+v, want the human's words", turns)
	}
	if q := r.recall.asked(); len(q) != 1 || q[0].Newest != "where is the key?" {
		t.Errorf("asked %+v", q)
	}
}

// Observing and injecting the same request within the window: the block is
// entered, or the next turn would miss it.
func TestObserveThenOn(t *testing.T) { inEach(t, testObserveThenOn) }

func testObserveThenOn(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("fact")
	r.post(a.body("user: q"), headerMemory, "observe")
	r.sent()
	r.post(a.body("user: q"))
	first := r.one().body
	r.recall.set()
	r.post(a.body("user: q", "assistant: fine", "user: next"))
	if !strings.Contains(first, "remora-memory") {
		t.Errorf("nothing was inserted: %s", first)
	}
	a.grows(t, first, r.one().body)
	ids := map[string]bool{}
	for _, turn := range r.turns() { // in any order: answers are read side by side
		if turn.Messages[0].Text == "q" {
			ids[turn.ID] = true
		}
	}
	if len(ids) != 1 {
		t.Errorf("the observed request and its repetition are %d turns", len(ids))
	}
}

// Many copies of one new request at once are one turn.
func TestTwinsAreOneTurn(t *testing.T) {
	r := newRig(t)
	r.recall.set("fact")
	var wg sync.WaitGroup
	r.posted += 16
	for range 16 {
		wg.Go(func() {
			resp, err := http.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(chat("user: q")))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	wg.Wait()
	ids, bodies := map[string]bool{}, map[string]bool{}
	for _, turn := range r.turns() {
		ids[turn.ID] = true
	}
	for _, up := range r.sent() {
		bodies[up.body] = true
	}
	if len(ids) != 1 || len(bodies) != 1 {
		t.Errorf("%d turns and %d bodies, want 1 and 1", len(ids), len(bodies))
	}
}

func spanAttribute(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// An answer with status 200 that reports an error is a failure, and tells of
// none of its words.
func TestReportedErrorsAreFailures(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	defer func() { _ = tp.Shutdown(context.Background()) }()
	r := newRig(t, func(_ *Config, d *Deps) { d.Tracer = tp })
	const chunk = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"Tea."}}]}` + "\n\n"
	for name, answer := range map[string]struct{ mediaType, body, want string }{
		"an event":           {"text/event-stream", chunk + `data: {"error":{"message":"private"}}` + "\n\n", errorReported},
		"in place of a body": {"application/json", `{"error":{"message":"private"}}`, errorReported},
		"none":               {"text/event-stream", chunk + "data: [DONE]\n\n", ""},
		"not JSON":           {"text/event-stream", chunk + "data: {\n\ndata: [DONE]\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			exporter.Reset()
			r.answers(func(received) (int, string, string) { return http.StatusOK, answer.mediaType, answer.body })
			r.post(chat("user: a question"))
			r.settle()
			spans := exporter.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%d spans, want 1", len(spans))
			}
			if got := spanAttribute(spans[0], telemetry.AttrError); got != answer.want {
				t.Errorf("error.type %q, want %q", got, answer.want)
			}
		})
	}
}

// What an upstream gives as the id of an answer and as its finish reason is
// shown only if it looks like one.
func TestShownTokens(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	defer func() { _ = tp.Shutdown(context.Background()) }()
	r := newRig(t, func(_ *Config, d *Deps) {
		d.Tracer = tp
		d.Redact = func(text string) string { return strings.ReplaceAll(text, "sk-secret", "[API_KEY]") }
	})
	for _, c := range []struct{ id, finish, wantID, wantFinish string }{
		{"chatcmpl-9aBc.1:2/3+4=", "stop", "chatcmpl-9aBc.1:2/3+4=", `["stop"]`},
		{strings.Repeat("i", maxShown), "filter_" + strings.Repeat("f", maxShownFinish-7), strings.Repeat("i", maxShown), `["filter_` + strings.Repeat("f", maxShownFinish-7) + `"]`},
		{strings.Repeat("i", maxShown+1), "filter_" + strings.Repeat("f", maxShownFinish-6), "", ""},
		{"what was said", "failed: what was said", "", ""},
		{"id-sk-secret", "error-sk-secret", "", ""},
		{"", "", "", `["stop"]`}, // a whole answer without a reason
	} {
		exporter.Reset()
		r.answers(func(received) (int, string, string) {
			return http.StatusOK, "application/json", fmt.Sprintf(
				`{"id":%q,"model":"m","choices":[{"index":0,"finish_reason":%q,"message":{"role":"assistant","content":"Tea."}}]}`, c.id, c.finish)
		})
		r.post(chat("user: a question"))
		r.settle()
		spans := exporter.GetSpans()
		if len(spans) != 1 {
			t.Fatalf("%d spans, want 1", len(spans))
		}
		if id, finish := spanAttribute(spans[0], telemetry.AttrResponseID), spanAttribute(spans[0], telemetry.AttrFinishReasons); id != c.wantID || finish != c.wantFinish {
			t.Errorf("%.20q, %.30q: shown as %.20q, %.30q; want %.20q, %.30q", c.id, c.finish, id, finish, c.wantID, c.wantFinish)
		}
	}

	exporter.Reset()
	long := strings.Repeat("m", maxShown+1)
	r.answers(func(received) (int, string, string) {
		return http.StatusOK, "application/json", fmt.Sprintf(`{"id":"c1","model":%q,"choices":[]}`, long)
	})
	r.post(fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"q"}]}`, long))
	r.settle()
	for _, s := range exporter.GetSpans() {
		if s.Name != "chat" || spanAttribute(s, telemetry.AttrModel) != "" || spanAttribute(s, telemetry.AttrResponseModel) != "" {
			t.Errorf("a model of %d bytes is shown", len(long))
		}
	}
}
