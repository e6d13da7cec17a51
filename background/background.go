// Package background lets work that nobody waits for give way to requests.
// Persist, recall and the store call it in their loops; it hides how to yield a
// processor, which the Go scheduler does too rarely for a latency of
// microseconds.
package background

import (
	"context"
	"time"
)

const (
	// yieldAfter is how long work runs before it yields, and so the longest
	// wait it causes. The kernel alone would let it run for 1 to 4 ms while
	// woken threads wait, often with another processor idle.
	yieldAfter = 200 * time.Microsecond
	// waitShare keeps the work going when neighbours never rest: after a yield
	// it runs for a quarter of the time that it waited.
	waitShare = 4
	// pauseAfter is how long work runs before it pauses, so that requests find
	// a processor on a small machine.
	pauseAfter = time.Millisecond
	maxPause   = 5 * time.Millisecond // the work may hold what others want
)

// Work is some work that gives way. One goroutine uses it.
type Work struct {
	began   time.Time // of the work, or of its last run after a pause; moved by what it has waited since
	yielded time.Time
	turn    time.Duration // from yielded to the next yield
}

// Begin begins work.
func Begin() Work {
	now := time.Now()
	return Work{now, now, yieldAfter}
}

// Yield lets threads run that wait for this one's processor, if the work has
// run for 200 us, or for a quarter of its last wait if that is longer.
// Otherwise it costs some 50 ns. It is called between items, without any lock
// that a request could want.
func (w *Work) Yield() {
	if now := time.Now(); now.Sub(w.yielded) >= w.turn {
		yield()
		w.waited(now, time.Now())
	}
}

// waited records that others had the processor.
func (w *Work) waited(from, to time.Time) {
	wait := to.Sub(from)
	*w = Work{w.began.Add(wait), to, max(yieldAfter, wait/waitShare)}
}

// Pause is Yield, followed by a pause if the work has run for a millisecond:
// for as long as it has run, at most 5 ms, or until ctx ends. It returns the
// length of the pause.
func (w *Work) Pause(ctx context.Context) time.Duration {
	w.Yield()
	worked := time.Since(w.began)
	if worked < pauseAfter {
		return 0
	}
	worked = min(worked, maxPause)
	timer := time.NewTimer(worked)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	now := time.Now()
	w.began, w.yielded = now, now
	return worked
}
