package main

import (
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
)

func newLogger(c config.Log, w io.Writer, terminal bool) *slog.Logger {
	return newLeveledLogger(c, c.SlogLevel(), w, terminal)
}

// newLeveledLogger is newLogger with a level that may change.
func newLeveledLogger(c config.Log, level slog.Leveler, w io.Writer, terminal bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if c.Format == config.FormatText || c.Format == config.FormatAuto && terminal {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// newQueuedLogger returns a logger that never blocks on w, and whose level is
// that of level. answers writes what somebody has asked for, whatever that level
// is. flush writes the last lines of both.
func newQueuedLogger(c config.Log, level slog.Leveler, w io.Writer) (log, answers *slog.Logger, flush func()) {
	q := newLogQueue(w)
	log, answers = newLeveledLogger(c, level, q, isTerminal(w)), newLeveledLogger(c, slog.LevelInfo, q, isTerminal(w))
	q.onDrop = func(lines int) {
		log.Warn("log lines were dropped: the reader of the log is slow or stopped", "lines", lines)
	}
	go q.run()
	return log, answers, q.close
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Mode()&os.ModeDevice != 0 && f.Name() != os.DevNull
}

// Limits of a logQueue.
const (
	maxLogBacklog    = 1 << 20     // bytes that wait to be written; later lines are dropped and counted
	keptLogBuffer    = 64 << 10    // bytes of buffer that are kept for reuse
	logFlushDeadline = time.Second // for the last lines of the process
)

// logQueue writes lines in a goroutine of its own, in order. A write to a pipe
// or a terminal may block forever: on a pager, on a terminal stopped with
// Ctrl-S, on a collector that hangs. Requests never wait for it.
type logQueue struct {
	to     io.Writer
	onDrop func(lines int) // called by the goroutine once lines can be written again; may write

	mu      sync.Mutex
	waiting []byte
	dropped int
	closed  bool
	wake    chan struct{} // holds one: something waits, or the queue is closed
	done    chan struct{} // closed when the queue is closed and empty
}

func newLogQueue(to io.Writer) *logQueue {
	return &logQueue{to: to, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Write queues one line. It never blocks and never fails.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if len(q.waiting)+len(line) > maxLogBacklog {
		q.dropped++
	} else {
		q.waiting = append(q.waiting, line...)
	}
	q.mu.Unlock()
	q.notify()
	return len(line), nil
}

func (q *logQueue) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run writes until the queue is closed and empty.
func (q *logQueue) run() {
	defer close(q.done)
	var writing []byte
	for range q.wake {
		for {
			q.mu.Lock()
			writing, q.waiting = q.waiting, writing[:0]
			dropped, closed := q.dropped, q.closed
			q.dropped = 0
			q.mu.Unlock()
			if len(writing) == 0 && dropped == 0 {
				if closed {
					return
				}
				break
			}
			_, _ = q.to.Write(writing) // a failure can't be reported anywhere else
			if cap(writing) > keptLogBuffer {
				writing = nil
			}
			if dropped > 0 {
				q.onDrop(dropped)
			}
		}
	}
}

// close waits up to logFlushDeadline until everything is written. Later lines
// may be lost.
func (q *logQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.notify()
	waitForLog(q.done)
}

// writeLastLine writes a line at the end of the process. It gives up after
// logFlushDeadline: a reader that has stopped must not keep the process from
// ending.
func writeLastLine(w io.Writer, line string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.WriteString(w, line)
	}()
	waitForLog(done)
}

func waitForLog(done <-chan struct{}) {
	timer := time.NewTimer(logFlushDeadline)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
