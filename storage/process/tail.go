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

// tail passes on what the process logs, one JSON object of log/slog a line, to the log of this one, and keeps the
// beginning of anything else: that is how the Go runtime reports the end of a process.
type tail struct {
	log *slog.Logger

	mu   sync.Mutex
	rest []byte
}

// maxTrace bounds what is kept of a report: the reason and the goroutine it happened in come first.
const maxTrace = 4 << 10

func newTail(log *slog.Logger) *tail { return &tail{log: log} }

func (t *tail) follow(r io.Reader) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n') // a longer line comes in pieces, none of which is JSON
		if line = bytes.TrimSpace(line); len(line) > 0 && !t.pass(line) {
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

func (t *tail) pass(line []byte) bool {
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
		_ = t.log.Handler().Handle(ctx, record) // a log that fails is nothing to log
	}
	return true
}

// crash returns the report, and whether it is of a fault.
func (t *tail) crash() (report string, fault bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, sign := range []string{"panic: ", "unexpected fault address", "fatal error: fault", "SIGBUS"} {
		fault = fault || bytes.Contains(t.rest, []byte(sign))
	}
	return string(t.rest), fault
}

// starved says that the process found no memory, no threads or no room on the disk.
func (t *tail) starved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, sign := range []string{"out of memory", "cannot allocate memory", "newosproc", "new OS thread", "too many open files", "no space left"} {
		if bytes.Contains(t.rest, []byte(sign)) {
			return true
		}
	}
	return false
}
