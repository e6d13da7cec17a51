package process

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestChildLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	child := &childLog{log: log}
	child.follow(strings.NewReader(`{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":"a warning","b":1,"a":"x"}
{"time":"2026-01-02T03:04:05Z","level":"DEBUG","msg":"below the level"}
{"not":"a record"}
panic: something
` + strings.Repeat("x", 200<<10)))
	want := "time=2026-01-02T03:04:05.000Z level=WARN msg=\"a warning\" a=x b=1\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	report, fault := child.crash()
	if !fault || !strings.Contains(report, "panic: something") || len(report) > 2*maxTrace || child.starved() {
		t.Errorf("report of %d bytes, fault %v", len(report), fault)
	}
	child = &childLog{log: log}
	child.follow(strings.NewReader("fatal error: runtime: out of memory\npanic: x"))
	if !child.starved() {
		t.Error("lack of memory was not recognised")
	}
}
