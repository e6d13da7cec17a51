package process

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	tl := newTail(log)
	tl.follow(strings.NewReader(`{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":"a warning","b":1,"a":"x"}
{"time":"2026-01-02T03:04:05Z","level":"DEBUG","msg":"not asked for"}
{"neither":"this"}
panic: something
` + strings.Repeat("x", 200<<10)))
	want := "time=2026-01-02T03:04:05.000Z level=WARN msg=\"a warning\" a=x b=1\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	report, fault := tl.crash()
	if !fault || !strings.Contains(report, "panic: something") || len(report) > 2*maxTrace || tl.starved() {
		t.Errorf("report of %d bytes, fault %v", len(report), fault)
	}
	tl = newTail(log)
	tl.follow(strings.NewReader("fatal error: runtime: out of memory\npanic: x"))
	if !tl.starved() {
		t.Error("hunger is not seen")
	}
}
