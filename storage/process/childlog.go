package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// childLog reads the output of the child process. Lines of log/slog in JSON go
// to the log of this process; the beginning of anything else is kept, because
// that is how the Go runtime reports a crash.
type childLog struct {
	log *slog.Logger

	mu   sync.Mutex
	rest []byte
}

// maxTrace limits what is kept of a crash report, whose reason and goroutine
// come first.
const maxTrace = 4 << 10

func (t *childLog) follow(r io.Reader) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n') // a longer line comes in pieces, none of which is JSON
		if line = bytes.TrimSpace(line); len(line) > 0 && !t.forward(line) {
			t.mu.Lock()
			if room := maxTrace - len(t.rest); room > 0 {
				t.rest = append(append(t.rest, line[:min(len(line), room)]...), '\n')
			}
			t.mu.Unlock()
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// forward logs a line, and reports whether it was a line of log/slog.
func (t *childLog) forward(line []byte) bool {
	var fields map[string]any
	if line[0] != '{' || json.Unmarshal(line, &fields) != nil {
		return false
	}
	var level slog.Level
	text, _ := fields[slog.LevelKey].(string)
	if level.UnmarshalText([]byte(text)) != nil {
		return false
	}
	message, _ := fields[slog.MessageKey].(string)
	written, _ := fields[slog.TimeKey].(string)
	for _, key := range []string{slog.LevelKey, slog.MessageKey, slog.TimeKey} {
		delete(fields, key)
	}
	at, _ := time.Parse(time.RFC3339Nano, written)
	record := slog.NewRecord(at, level, message, 0)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		record.AddAttrs(slog.Any(key, fields[key]))
	}
	if ctx := context.Background(); t.log.Enabled(ctx, level) {
		_ = t.log.Handler().Handle(ctx, record) // a failing log cannot be logged
	}
	return true
}

// crash returns the crash report, and whether it is of a fault.
func (t *childLog) crash() (report string, fault bool) {
	t.mu.Lock()
	report = string(t.rest)
	t.mu.Unlock()
	return report, t.containsAny("panic: ", "unexpected fault address", "fatal error: fault", "SIGBUS")
}

// starved reports whether the process ran out of memory, threads, files or disk
// space.
func (t *childLog) starved() bool {
	return t.containsAny("out of memory", "cannot allocate memory", "newosproc", "new OS thread", "too many open files", "no space left")
}

func (t *childLog) containsAny(signs ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(signs, func(sign string) bool { return bytes.Contains(t.rest, []byte(sign)) })
}
