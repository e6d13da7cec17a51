package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/telemetry"
)

// socketRig is a Handler between a WebSocket client and an upstream that
// answers each frame by a script.
type socketRig struct {
	*rig
	conn net.Conn
	got  chan string // messages that reached the upstream
	head chan http.Header
}

// newSocketRig's upstream answers a message with the frames that answer gives
// for it, by number from 0.
func newSocketRig(t *testing.T, answer func(n int, text string) []string, header ...string) *socketRig {
	t.Helper()
	return newTracedSocketRig(t, nil, answer, header...)
}

func newTracedSocketRig(t *testing.T, traces trace.TracerProvider, answer func(n int, text string) []string, header ...string) *socketRig {
	t.Helper()
	s := &socketRig{got: make(chan string, 64), head: make(chan http.Header, 1)}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.head <- r.Header.Clone()
		conn, _, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			return
		}
		defer conn.Close()
		for n := 0; ; n++ {
			text, op, err := wsutil.ReadClientData(conn) // answers pings by itself
			if err != nil {
				return
			}
			s.got <- string(text)
			if op == ws.OpBinary {
				_ = wsutil.WriteServerBinary(conn, text)
				continue
			}
			for _, frame := range answer(n, string(text)) {
				if wsutil.WriteServerText(conn, []byte(frame)) != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(up.Close)
	s.rig = newRig(t, func(c *Config, d *Deps) {
		d.Tracer = traces
		c.WebSocket = WebSocketEnrich
		c.Upstreams = []httpclient.UpstreamConfig{{Name: "mock", URL: up.URL, Paths: []string{"/"}}}
		c.Limits.BodyBytes = 64 << 10
	})
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP(h)}
	conn, _, _, err := dialer.Dial(context.Background(), strings.Replace(s.url, "http", "ws", 1)+"/v1/responses")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	s.conn = conn
	return s
}

func (s *socketRig) send(text string) {
	s.t.Helper()
	if err := wsutil.WriteClientText(s.conn, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socketRig) receive() string {
	s.t.Helper()
	b, _, err := wsutil.ReadServerData(s.conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

func (s *socketRig) upstreamGot() string {
	s.t.Helper()
	select {
	case got := <-s.got:
		return got
	case <-time.After(patience):
		s.t.Fatal("nothing reached the upstream")
		return ""
	}
}

// stored waits for n turns.
func (s *socketRig) stored(n int) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s.persist.mu.Lock()
		have := len(s.persist.turns)
		s.persist.mu.Unlock()
		if have == n {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d turns are stored, want %d", have, n)
		}
	}
}

func create(previous, text string) string {
	q, _ := json.Marshal(text)
	p := ""
	if previous != "" {
		p = fmt.Sprintf(`"previous_response_id":%q,`, previous)
	}
	return fmt.Sprintf(`{"type":"response.create","model":"m","store":false,%s"input":[{"type":"message","role":"user","content":%s}], "n" : 1e0}`, p, q)
}

// events is a response that answers "fine".
func events(id string) []string {
	return []string{
		fmt.Sprintf(`{"type":"response.created","response":{"id":%q,"status":"in_progress","model":"m"}}`, id),
		`{"type":"response.output_text.delta","delta":"fine"}`,
		fmt.Sprintf("{\"type\":\"response.completed\",\r\n\"response\":{\"id\":%q,\"status\":\"completed\",\"model\":\"m\",\"output\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"fine\"}]}]}}", id),
	}
}

// bare is a message without Remora's element, and whether it had one.
func bare(t *testing.T, text string) (string, bool) {
	t.Helper()
	from := strings.Index(text, `{"type":"message","role":"user","content":[{"type":"input_text","text":"<remora`)
	if from < 0 {
		return text, false
	}
	const closing = "}]},"
	end := strings.Index(text[from:], closing)
	if end < 0 {
		t.Fatalf("an element is not closed: %s", text)
	}
	return text[:from] + text[from+end+len(closing):], true
}

// Two turns over one socket: each is given its memory once, the rest of the
// frame is as it was, both are stored, and the second knows what the upstream
// holds.
func TestSocketTurns(t *testing.T) {
	s := newSocketRig(t, func(n int, _ string) []string { return events(fmt.Sprintf("resp_%d", n)) },
		"Sec-WebSocket-Extensions", "permessage-deflate")
	if got := (<-s.head).Get("Sec-Websocket-Extensions"); got != "" {
		t.Errorf("the upstream was offered %s", got)
	}
	s.recall.set("the user's cat is called Miso")
	previous := ""
	for n := range 2 {
		frame := create(previous, fmt.Sprintf("question %d?", n))
		s.send(frame)
		got, enriched := bare(t, s.upstreamGot())
		if got != frame {
			t.Errorf("turn %d: got  %s\nwant %s", n, got, frame)
		}
		if enriched != (n == 0) { // the second time the upstream holds the memory already
			t.Errorf("turn %d: enriched %v", n, enriched)
		}
		previous = fmt.Sprintf("resp_%d", n)
		for _, want := range events(previous) {
			if got := s.receive(); got != want {
				t.Errorf("event: got %s, want %s", got, want)
			}
		}
		s.stored(n + 1)
	}
	s.persist.mu.Lock()
	defer s.persist.mu.Unlock()
	a, b := s.persist.turns[0], s.persist.turns[1]
	if a.Conversation != b.Conversation || a.ID == b.ID || b.Messages[1].Text != "fine" {
		t.Errorf("got turns %+v and %+v", a, b)
	}
}

// What begins no response passes as it came: other messages, fragments, binary,
// frames too large, and pings between.
func TestSocketPassesTheRest(t *testing.T) {
	s := newSocketRig(t, func(_ int, text string) []string { return []string{"echo " + text[:min(len(text), 100)]} })
	s.recall.set("a memory")
	large := create("", strings.Repeat("x", 100<<10))
	for _, text := range []string{`{"type":"other","input":[]}`, "not JSON", `{"type":"response.create"}`, ""} {
		s.send(text)
		if got := s.upstreamGot(); got != text {
			t.Errorf("got %.80s, want %.80s", got, text)
		}
		if got, want := s.receive(), "echo "+text[:min(len(text), 100)]; got != want {
			t.Errorf("got %.80s, want %.80s", got, want)
		}
	}
	if err := wsutil.WriteClientBinary(s.conn, []byte{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	if got := s.upstreamGot(); got != "\x00\x01\x02" {
		t.Errorf("got %q", got)
	}
	if got := s.receive(); got != "\x00\x01\x02" {
		t.Errorf("got %q", got)
	}
	frame := func(op ws.OpCode, fin bool, payload string) {
		t.Helper()
		f := ws.NewFrame(op, fin, []byte(payload))
		if err := ws.WriteFrame(s.conn, ws.MaskFrame(f)); err != nil {
			t.Fatal(err)
		}
	}
	whole := create("", "in three pieces?")
	frame(ws.OpText, false, whole[:10])
	frame(ws.OpPing, true, "now")
	frame(ws.OpContinuation, false, whole[10:50])
	frame(ws.OpContinuation, true, whole[50:])
	if got, enriched := bare(t, s.upstreamGot()); got != whole || !enriched {
		t.Errorf("fragments: got %s, enriched %v", got, enriched)
	}
	h, err := ws.ReadHeader(s.conn)
	if err != nil || h.OpCode != ws.OpPong {
		t.Errorf("ping: got %v, %v", h.OpCode, err)
	}
	s.send(large)
	if got := s.upstreamGot(); got != large {
		t.Errorf("got %.80s, want %.80s", got, large)
	}
}

// A refused frame is sent again as it was, once; the client hears of the second
// answer only.
func TestSocketDoesNoHarm(t *testing.T) {
	refusal := `{"type":"error","status":400,"error":{"code":"invalid","message":"two user messages in a row"}}`
	s := newSocketRig(t, func(n int, text string) []string {
		if strings.Contains(text, "remora-memory") || n > 3 {
			return []string{refusal}
		}
		return events("resp_1")
	})
	s.recall.set("a memory")
	frame := create("", "question?")
	s.send(frame)
	if _, enriched := bare(t, s.upstreamGot()); !enriched {
		t.Error("nothing was inserted")
	}
	if got := s.upstreamGot(); got != frame {
		t.Errorf("got %s, want the original", got)
	}
	for _, want := range events("resp_1") {
		if got := s.receive(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	s.stored(1)
	if got := s.h.stats.Retries.Load(); got != 1 {
		t.Errorf("%d retries, want 1", got)
	}
}

func TestSocketModes(t *testing.T) {
	for mode, want := range map[string]struct {
		enriched bool
		turns    int
	}{"on": {true, 1}, "read": {true, 0}, "write": {false, 1}, "observe": {false, 1}, "off": {false, 0}} {
		s := newSocketRig(t, func(int, string) []string { return events("r") }, headerMemory, mode)
		if got := (<-s.head).Get(headerMemory); got != "" {
			t.Errorf("%s: the upstream was told", mode)
		}
		s.recall.set("a memory")
		s.send(create("", "question?"))
		if _, got := bare(t, s.upstreamGot()); got != want.enriched {
			t.Errorf("%s: enriched %v", mode, got)
		}
		for range events("r") {
			s.receive()
		}
		s.stored(want.turns)
	}
}

// Codex warms a socket up before the user has said anything, and says of each
// response what kind it is.
func TestSocketSideCalls(t *testing.T) {
	s := newSocketRig(t, func(n int, _ string) []string { return events(fmt.Sprintf("resp_%d", n)) },
		"Originator", "codex_exec", "X-Codex-Turn-Metadata", `{"request_kind":"prewarm"}`)
	s.recall.set("a memory")
	warm := strings.Replace(create("", "earlier words"), `"model"`, `"generate":false,"model"`, 1)
	s.send(warm)
	if got := s.upstreamGot(); got != warm {
		t.Errorf("warming up was changed: %s", got)
	}
	for range events("") {
		s.receive()
	}
	turn := strings.Replace(create("resp_0", "question?"), `"model"`,
		`"client_metadata":{"x-codex-turn-metadata":"{\"request_kind\":\"turn\"}","x-remora-user":"somebody else"},"model"`, 1)
	s.send(turn)
	if got, enriched := bare(t, s.upstreamGot()); got != turn || !enriched {
		t.Errorf("got %s, enriched %v", got, enriched)
	}
	for range events("") {
		s.receive()
	}
	s.stored(1)
	s.persist.mu.Lock()
	defer s.persist.mu.Unlock()
	if got := s.persist.turns[0].Scope.User; got != identity.KeyHolderUser {
		t.Errorf("metadata of the frame named the user %q", got)
	}
}

// An upstream that breaks off is told to the client as such, and what it had
// not finished is no turn.
func TestSocketCut(t *testing.T) {
	s := newSocketRig(t, func(_ int, _ string) []string { return events("r")[:2] })
	s.send(create("", "question?"))
	s.receive()
	s.receive()
	_ = s.conn.Close()
	for deadline := time.Now().Add(patience); s.h.tees.used.Load() != 0 || s.h.bodies.used.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("buffers are still held")
		}
	}
	s.stored(0)
}

// FuzzPump: whatever frames come, what goes out is the same messages, and
// nothing panics or grows without bound.
func FuzzPump(f *testing.F) {
	var seed bytes.Buffer
	_ = ws.WriteFrame(&seed, ws.MaskFrame(ws.NewTextFrame([]byte(create("", "hi")))))
	_ = ws.WriteFrame(&seed, ws.NewFrame(ws.OpText, false, []byte("a")))
	_ = ws.WriteFrame(&seed, ws.NewFrame(ws.OpContinuation, true, []byte("b")))
	f.Add(seed.Bytes())
	f.Add([]byte{0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		b := &budget{limit: 1 << 20}
		p := &pump{src: bytes.NewReader(in), dst: &out, limit: 1 << 10, budget: b, to: newLane(), change: func(text []byte) [][]byte {
			_ = (dialect.Responses{}).EventType(text)
			_ = (dialect.Responses{}).ClientMetadata(text)
			return nil
		}, missed: func() {}, idle: time.Minute, late: func() {}}
		p.run()
		if b.used.Load() != 0 {
			t.Fatal("the budget was not given back")
		}
		if out.Len() > len(in) {
			t.Fatalf("%d bytes became %d", len(in), out.Len())
		}
	})
}

// TestSocketLeavesWithTheDoor: a socket that waits for its client holds up no
// end; one that waits for an answer has that first.
func TestSocketLeavesWithTheDoor(t *testing.T) {
	for _, awaited := range []bool{false, true} {
		t.Run(fmt.Sprint("awaited ", awaited), func(t *testing.T) {
			answers := make(chan struct{})
			s := newSocketRig(t, func(int, string) []string { <-answers; return events("resp_0") })
			<-s.head // of the rig's own socket
			door := runServer(t, s.h, nil)
			conn, _, _, err := ws.Dialer{}.Dial(t.Context(), "ws://"+door.Addr().String()+"/v1/responses")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			s.conn = conn
			if awaited {
				s.send(create("", "Hi"))
				s.upstreamGot()
			}
			door.stop()
			for closed := false; !closed; {
				c, err := net.Dial("tcp", door.Addr().String())
				if closed = err != nil; !closed {
					c.Close()
				}
			}
			close(answers)
			if awaited {
				for _, want := range events("resp_0") {
					if got := s.receive(); got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				}
			}
			f, err := ws.ReadFrame(conn)
			if err != nil || f.Header.OpCode != ws.OpClose {
				t.Fatalf("got %+v, %v, want a farewell", f.Header, err)
			}
			if code, _ := ws.ParseCloseFrameData(f.Payload); code != ws.StatusGoingAway {
				t.Errorf("got %d, want %d", code, ws.StatusGoingAway)
			}
			if err := wait(t, door.done); err != nil {
				t.Errorf("Serve: got %v, want a clean drain", err)
			}
			if awaited {
				s.stored(1)
			}
		})
	}
}

// Responses in lanes of their own may come at the same time, each to its turn.
func TestSocketLanes(t *testing.T) {
	lane := func(id string, frames []string) (out []string) {
		for _, f := range frames {
			out = append(out, fmt.Sprintf(`{"stream_id":%q,`, id)+f[1:])
		}
		return out
	}
	s := newSocketRig(t, func(n int, _ string) []string {
		if n < 1 {
			return nil // both are answered at once
		}
		a, b := lane("a", events("resp_a")), lane("b", events("resp_b"))
		a[1] = strings.Replace(a[1], "fine", "first", 1)
		a[2] = strings.Replace(a[2], "fine", "first", 1)
		return []string{b[0], a[0], b[1], a[1], a[2], b[2]}
	})
	s.recall.set("tea")
	s.send(`{"stream_id":"a",` + create("", "question a")[1:])
	s.send(`{"stream_id":"b",` + create("", "question b")[1:])
	for range 2 {
		if got := s.upstreamGot(); !strings.Contains(got, "tea") {
			t.Errorf("no memory in %s", got)
		}
	}
	const steer = `{"type":"response.steer","stream_id":"a","input":"shorter"}`
	for range 6 {
		s.receive()
	}
	s.send(steer)
	if got := s.upstreamGot(); got != steer {
		t.Errorf("got %s, want it unchanged", got)
	}
	s.stored(2)
	s.persist.mu.Lock()
	defer s.persist.mu.Unlock()
	for _, turn := range s.persist.turns {
		want := map[string]string{"question a": "first", "question b": "fine"}[turn.Messages[0].Text]
		if got := turn.Messages[1].Text; got != want {
			t.Errorf("%s: answer %q, want %q", turn.Messages[0].Text, got, want)
		}
	}
}

// An error event is a failure of the exchange, as an answer with its status is.
func TestSocketErrorsAreFailures(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	defer func() { _ = tp.Shutdown(context.Background()) }()
	frames := [][]string{
		{`{"type":"error","status":429,"error":{"message":"private"}}`},
		{`{"type":"error","error":{"message":"private"}}`},
		append(events("r")[:2], `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"message":"private"}}}`),
		events("r"),
	}
	s := newTracedSocketRig(t, tp, func(n int, _ string) []string { return frames[n] })
	for i, want := range []string{"429", errorReported, errorReported, ""} {
		s.send(create("", "question"))
		for range frames[i] {
			s.receive()
		}
		for began := time.Now(); len(exporter.GetSpans()) <= i && time.Since(began) < patience; {
			time.Sleep(time.Millisecond)
		}
		spans := exporter.GetSpans()
		if len(spans) != i+1 {
			t.Fatalf("answer %d: %d spans", i, len(spans))
		}
		if got := spanAttribute(spans[i], telemetry.AttrError); got != want {
			t.Errorf("answer %d: error.type %q, want %q", i, got, want)
		}
	}
}
