package proxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// The answer to a frame that was sent again comes after those to frames that
// were on their way: each goes to its question.
func TestSocketRetryComesLast(t *testing.T) {
	release := make(chan struct{})
	s := newSocketRig(t, func(n int, text string) []string {
		if n == 0 {
			<-release // both are asked for before either is answered
			return []string{`{"type":"error","status":400,"error":{"message":"no"}}`}
		}
		return []string{strings.ReplaceAll(events(fmt.Sprintf("resp_%d", n))[2], "fine", fmt.Sprintf("answer %d", n))}
	})
	s.recall.set("a memory")
	s.send(create("", "first question?"))
	s.upstreamGot()
	s.send(create("", "second question?"))
	for deadline := time.Now().Add(patience); s.h.stats.Exchanges.Load() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second frame was not read")
		}
	}
	close(release)
	s.receive()
	s.receive()
	s.stored(2)
	s.persist.mu.Lock()
	defer s.persist.mu.Unlock()
	got := map[string]string{}
	for _, turn := range s.persist.turns {
		got[turn.Messages[0].Text] = turn.Messages[1].Text
	}
	if got["second question?"] != "answer 1" || got["first question?"] != "answer 2" {
		t.Errorf("got %v", got)
	}
}

// An event too large to be looked at may be a response's last. What follows is
// no answer to that response's question.
func TestSocketLargeEvent(t *testing.T) {
	s := newSocketRig(t, func(n int, _ string) []string {
		last := events("r")[2]
		if n == 0 {
			last = strings.ReplaceAll(last, "fine", strings.Repeat("x", socketFrame))
		}
		return []string{last}
	})
	s.send(create("", "first question?"))
	s.receive()
	s.send(create("", "second question?"))
	s.receive()
	s.send(create("", "third question?"))
	s.receive()
	s.settle()
	s.persist.mu.Lock()
	defer s.persist.mu.Unlock()
	for _, turn := range s.persist.turns {
		if strings.HasPrefix(turn.Messages[0].Text, "first") {
			t.Error("the first question was stored with an answer to another")
		}
	}
}

// A panic of memory's leaves the socket, and the process, as they were.
func TestSocketPanic(t *testing.T) {
	r := newRig(t)
	s := &socket{x: call{h: r.h}} // without a request to look at
	if pieces := s.asked([]byte(create("", "question?"))); pieces != nil || r.h.stats.Panics.Load() != 1 {
		t.Errorf("got %q, %d panics counted", pieces, r.h.stats.Panics.Load())
	}
}

// What one frame announces is not taken for granted, and what many empty ones
// hold is bounded.
func TestPumpHoldsLittle(t *testing.T) {
	measure := func(in []byte, b *budget) (alloc uint64, missed int) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var out bytes.Buffer
		p := &pump{src: bytes.NewReader(in), dst: &out, limit: 64 << 20, budget: b, to: newLane(),
			change: func([]byte) [][]byte { return nil }, missed: func() { missed++ }, idle: time.Minute, late: func() {}}
		p.run()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, missed
	}
	b := &budget{limit: 1 << 20}
	head := binary.BigEndian.AppendUint64([]byte{0x81, 127}, 32<<20)
	if alloc, missed := measure(head, b); alloc > 1<<20 || missed != 0 {
		t.Errorf("a head alone took %d bytes, %d were missed", alloc, missed)
	}
	var many bytes.Buffer
	_ = ws.WriteHeader(&many, ws.Header{OpCode: ws.OpText})
	many.Write(bytes.Repeat([]byte{0, 0}, 1<<20))
	if _, missed := measure(many.Bytes(), b); missed != 1 {
		t.Errorf("a message in a million frames was held")
	}
	if b.used.Load() != 0 {
		t.Errorf("%d bytes of the budget were not given back", b.used.Load())
	}
}
