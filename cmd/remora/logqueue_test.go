package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
)

// haltedWriter has each write wait until on is closed; nil = none waits.
type haltedWriter struct {
	on chan struct{}
	b  bytes.Buffer
}

func (h *haltedWriter) Write(p []byte) (int, error) {
	if h.on != nil {
		<-h.on
	}
	return h.b.Write(p)
}

// Lines come in their order, and all that were written before the end are
// there.
func TestLogQueueKeepsOrder(t *testing.T) {
	var out haltedWriter
	log, _, done := newQueuedLogger(config.Log{Level: "info", Format: config.FormatText}, slog.LevelInfo, &out)
	var want strings.Builder
	for n := range 1000 {
		log.Info("line", "n", n)
		fmt.Fprintf(&want, " n=%d\n", n)
	}
	done()
	var got strings.Builder
	for line := range strings.Lines(out.b.String()) {
		_, n, _ := strings.Cut(line, "msg=line")
		got.WriteString(n)
	}
	if got.String() != want.String() {
		t.Errorf("the lines differ from those that were logged: %d bytes of %d", got.Len(), want.Len())
	}
}

// A reader that stands still holds up nobody. What it may catch up with is
// bounded, and it is told what it has missed.
func TestLogQueueNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := haltedWriter{on: make(chan struct{})}
		log, _, done := newQueuedLogger(config.Log{Level: "info", Format: config.FormatText}, slog.LevelInfo, &out)
		log.Info("first")
		synctest.Wait() // it is being written
		long := strings.Repeat("x", 1<<10)
		for range 2 * maxLogBacklog >> 10 {
			log.Info("long", "x", long)
		}
		close(out.on)
		synctest.Wait()
		log.Info("after")
		done()
		got := out.b.String()
		lines := strings.Count(got, long)
		if lines == 0 || lines > maxLogBacklog>>10 || !strings.HasPrefix(got[strings.Index(got, "msg="):], "msg=first") || !strings.Contains(got, "msg=after") {
			t.Errorf("%d long lines of %d were written, in %d bytes", lines, 2*maxLogBacklog>>10, len(got))
		}
		if lost := fmt.Sprintf("lines=%d", 2*maxLogBacklog>>10-lines); !strings.Contains(got, lost) {
			t.Errorf("it does not tell of %s", lost)
		}
	})
}

// The end waits for the last lines, and not for ever.
func TestLogQueueEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := haltedWriter{on: make(chan struct{})}
		log, _, done := newQueuedLogger(config.Log{Level: "info", Format: config.FormatText}, slog.LevelInfo, &out)
		log.Info("never read")
		began := time.Now()
		done()
		if waited := time.Since(began); waited != logFlushDeadline {
			t.Errorf("the end took %v", waited)
		}
		close(out.on) // or its goroutine would outlive the test
	})
}

// Nor does the process stay for a reader that does not read why it failed.
func TestLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := haltedWriter{on: make(chan struct{})}
		began := time.Now()
		writeLastLine(&out, "remora: cut\n")
		if waited := time.Since(began); waited != logFlushDeadline {
			t.Errorf("the end took %v", waited)
		}
		close(out.on)
		synctest.Wait()
		writeLastLine(&out, "remora: cut again\n")
		if got := out.b.String(); got != "remora: cut\nremora: cut again\n" {
			t.Errorf("got %q", got)
		}
	})
}
