package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// quietPump is a pump that changes nothing.
func quietPump(src io.Reader, dst io.Writer, limit int, b *budget) *pump {
	return &pump{
		src: src, dst: dst, limit: limit, budget: b, to: newLane(), idle: time.Minute,
		change: func([]byte) [][]byte { return nil }, missed: func() {}, late: func() {},
	}
}

// bigFrame is the head of a masked text frame of n bytes.
func bigFrame(n int) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, uint64(n)), 1, 2, 3, 4)
}

// A frame is charged as it comes, and goes by as it came where the budget ends
// in the midst of it.
func TestFramesAreChargedAsTheyCome(t *testing.T) {
	const n = 32 << 20
	client, src := net.Pipe()
	b := &budget{limit: 1 << 20}
	var out bytes.Buffer
	p := quietPump(src, &out, n, b)
	missed := 0
	p.missed = func() { missed++ }
	ended := make(chan struct{})
	go func() { defer close(ended); p.run() }()
	mustWrite(t, client, string(bigFrame(n)))
	sent := bytes.NewBuffer(bigFrame(n))
	send := func(text string) {
		mustWrite(t, client, text)
		sent.WriteString(text)
	}
	send("x") // its head has been read
	if used := b.used.Load(); used > 2*firstRoom {
		t.Errorf("%d bytes are held for one that came", used)
	}
	part := strings.Repeat("0123456789abcdef", 1<<10)
	for range n>>14 - 1 {
		send(part)
		if used := b.used.Load(); used > int64((firstMore+1)*sent.Len()+firstRoom) {
			t.Fatalf("%d bytes are held for %d that came", used, sent.Len())
		}
	}
	send(part[1:])
	_ = client.Close()
	wait(t, ended)
	if missed != 1 || b.used.Load() != 0 || !bytes.Equal(out.Bytes(), sent.Bytes()) {
		t.Errorf("%d missed, %d bytes still charged, %d passed of %d", missed, b.used.Load(), out.Len(), sent.Len())
	}
}

// A message that has begun must go on; between messages a socket may be silent
// for as long as it likes.
func TestIdleMessagesEnd(t *testing.T) {
	part := ws.MustCompileFrame(ws.NewFrame(ws.OpText, false, []byte("a part")))
	whole := ws.MustCompileFrame(ws.NewTextFrame([]byte("whole")))
	for _, tt := range []struct {
		name string
		sent [][]byte
		ends bool
	}{
		{"silent", nil, false},
		{"between messages", [][]byte{whole}, false},
		{"in a frame", [][]byte{bigFrame(1 << 10)}, true},
		{"in a frame that goes by", [][]byte{bigFrame(1 << 20), []byte("x")}, true},
		{"between frames of a message", [][]byte{part}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, src := net.Pipe()
				b := &budget{limit: 1 << 20}
				p := quietPump(src, io.Discard, 64<<10, b)
				late := time.Time{}
				p.late = func() { late = time.Now(); _ = src.Close() }
				go p.run()
				start := time.Now()
				for _, piece := range tt.sent {
					time.Sleep(40 * time.Second) // each is in time
					mustWrite(t, client, string(piece))
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				want := start.Add(time.Duration(len(tt.sent))*40*time.Second + p.idle)
				if ended := !late.IsZero(); ended != tt.ends || ended && !late.Equal(want) {
					t.Errorf("ended at %v, want %v at %v", late.Sub(start), tt.ends, want.Sub(start))
				}
				if tt.ends && b.used.Load() != 0 {
					t.Errorf("%d bytes are still charged", b.used.Load())
				}
				_ = client.Close()
			})
		})
	}
}

// bareSocket carries between a client and an upstream that the test is.
func bareSocket(t *testing.T, opts ...rigOption) (s *socket, r *rig, client, upstream net.Conn, ended chan struct{}) {
	t.Helper()
	r = newRig(t, append([]rigOption{func(c *Config, _ *Deps) { c.WebSocket = WebSocketEnrich }}, opts...)...)
	in := httptest.NewRequest("GET", "/v1/responses", nil)
	in.Host = "localhost"
	in.Header.Set("Authorization", "Bearer sk-rig")
	s = newSocket(call{h: r.h, r: in, ctx: in.Context(), up: r.h.plane.choose(in)})
	client, inner := net.Pipe()
	upstream, outer := net.Pipe()
	for _, c := range []net.Conn{client, upstream} {
		_ = c.SetDeadline(time.Now().Add(patience))
	}
	ended = make(chan struct{})
	go func() { defer close(ended); s.carry(context.Background(), inner, outer) }()
	t.Cleanup(func() { _ = client.Close(); _ = upstream.Close(); <-ended })
	return s, r, client, upstream, ended
}

// An upstream that says something and reads nothing until it is heard gets to
// say it, whatever is being written to it: what it refused goes out again
// beside what it says.
func TestRetriesDoNotStopTheUpstream(t *testing.T) {
	_, r, client, upstream, _ := bareSocket(t)
	r.recall.set("a memory")
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	heard := make(chan string, 16)
	go func() {
		for {
			b, _, err := wsutil.ReadServerData(client)
			if err != nil {
				return
			}
			heard <- string(b)
		}
	}()
	first := create("", "first question?")
	fail(wsutil.WriteClientText(client, []byte(first)))
	enriched, err := wsutil.ReadClientText(upstream)
	fail(err)
	if string(enriched) == first {
		t.Fatal("the first frame went as it came")
	}
	go func() { _ = wsutil.WriteClientText(client, []byte(create("", "second question?"))) }()
	var head [2]byte
	_, err = io.ReadFull(upstream, head[:]) // the second is being written, and read no further
	fail(err)
	fail(wsutil.WriteServerText(upstream, []byte(`{"type":"error","status":400,"error":{"message":"no"}}`)))
	fail(wsutil.WriteServerText(upstream, []byte(`{"type":"note"}`)))
	select {
	case got := <-heard:
		if got != `{"type":"note"}` {
			t.Errorf("the client heard %s", got)
		}
	case <-time.After(patience):
		t.Fatal("nothing is heard of what the upstream says")
	}
	rest := io.MultiReader(bytes.NewReader(head[:]), upstream)
	both := struct {
		io.Reader
		io.Writer
	}{rest, upstream}
	second, err := wsutil.ReadClientText(both)
	fail(err)
	again, err := wsutil.ReadClientText(both)
	fail(err)
	if !strings.Contains(string(second), "second question?") || string(again) != first {
		t.Errorf("the upstream got %s and then %s", second, again)
	}
}

// While one message of the client's is read, what it asked for before belongs
// to who reads the answers.
func TestAPanicLeavesAnswersToTheirReader(t *testing.T) {
	broken := false
	s, r, _, _, _ := bareSocket(t, func(_ *Config, d *Deps) {
		now := d.Now
		d.Now = func() time.Time {
			if broken {
				panic("clock")
			}
			return now()
		}
	})
	if s.asked([]byte(create("", "first question?"))); len(s.pending) != 1 || s.pending[0].tee == nil {
		t.Fatal("the first frame is not awaited")
	}
	y := s.pending[0]
	broken = true
	pieces := s.asked([]byte(create("", "second question?")))
	broken = false
	if pieces != nil || len(s.pending) != 1 || y.tee.over {
		t.Error("the answer was taken from its reader")
	}
	if got := s.answered([]byte(`{"type":"response.completed"}`)); got != nil || len(s.pending) != 0 || !y.tee.over {
		t.Error("what can't be told is still awaited")
	}
	if s.asked([]byte(create("", "third question?"))); len(s.pending) != 0 {
		t.Error("memory goes on where answers can't be told")
	}
	if used := r.h.bodies.used.Load() + r.h.tees.used.Load(); used != 0 {
		t.Errorf("%d bytes are still charged", used)
	}
}
