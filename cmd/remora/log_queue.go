package main

import (
	"io"
	"sync"
	"time"
)

// logQueue writes lines in a goroutine of its own, in their order. A write to a pipe or a terminal waits for whoever reads
// it, and that may be for ever: a pager, a terminal that was stopped by Ctrl-S, a collector that hangs. No request waits
// with it. At most logBacklog bytes wait to be written; lines beyond are dropped, and counted.
type logQueue struct {
	to   io.Writer
	lost func(lines int) // called in the goroutine, when lines can be written again; it may write

	mu      sync.Mutex
	waiting []byte
	dropped int
	closed  bool
	wake    chan struct{} // holds one; something waits, or the queue is closed
	done    chan struct{} // closed when all is written and the queue closed
}

const (
	logBacklog  = 1 << 20
	logPatience = time.Second // for the last lines, at the end
)

func newLogQueue(to io.Writer) *logQueue {
	return &logQueue{to: to, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Write takes one line. It never waits and never fails.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if len(q.waiting)+len(line) > logBacklog {
		q.dropped++
	} else {
		q.waiting = append(q.waiting, line...)
	}
	q.mu.Unlock()
	q.rouse()
	return len(line), nil
}

func (q *logQueue) rouse() {
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
			_, _ = q.to.Write(writing) // there is no other place to tell of it
			if cap(writing) > keptLog {
				writing = nil
			}
			if dropped > 0 {
				q.lost(dropped)
			}
		}
	}
}

// keptLog is how much room for lines is kept, in bytes.
const keptLog = 64 << 10

// close has what waits written, for at most logPatience. What comes afterwards may be lost.
func (q *logQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.rouse()
	patience := time.NewTimer(logPatience)
	defer patience.Stop()
	select {
	case <-q.done:
	case <-patience.C:
	}
}

// lastWord writes a line at the end of the process, for at most logPatience: who does not read must not keep it from ending.
func lastWord(w io.Writer, line string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.WriteString(w, line)
	}()
	patience := time.NewTimer(logPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
}
