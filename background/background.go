// Package background lets work that nobody waits for give way to requests.
package background

import (
	"context"
	"time"
)

const (
	// The system lets whoever runs go on for a millisecond or more, four on some kernels, while those that have just woken up wait behind it, often with
	// another processor idle: this is how long requests wait at most, where the work comes to a Yield as often.
	yieldAfter = 200 * time.Microsecond
	// Those that a yield lets go first may be neighbours that never rest. The work then goes on for a share of the time that it had
	// to wait, or it would hardly go on at all.
	waitShare = 4
	// Even so a request may find every processor taken on a small machine.
	stretch      = time.Millisecond
	longestPause = 5 * time.Millisecond // whoever pauses may hold what others want
)

// Work is some work that gives way. It is used by one goroutine.
type Work struct {
	began   time.Time // or went on after a pause, later by what it has waited since
	yielded time.Time
	turn    time.Duration // from yielded to the next yield
}

// Begin begins work.
func Begin() Work {
	now := time.Now()
	return Work{now, now, yieldAfter}
}

// Yield lets threads go first that wait for this one's processor, if there are any and the work has gone on for 200 us, or for a
// quarter of what it waited the last time, if that is longer. It costs some 50 ns else, and is to be called between items, with
// no lock held that a request could want.
func (w *Work) Yield() {
	if now := time.Now(); now.Sub(w.yielded) >= w.turn {
		yield()
		w.waited(now, time.Now())
	}
}

// waited notes that others had the processor.
func (w *Work) waited(from, to time.Time) {
	wait := to.Sub(from)
	*w = Work{w.began.Add(wait), to, max(yieldAfter, wait/waitShare)}
}

// Pause is a Yield, and pauses where the work has gone on for a millisecond for as long as that, up to 5 ms or until ctx ends. It returns for how long.
func (w *Work) Pause(ctx context.Context) time.Duration {
	w.Yield()
	worked := time.Since(w.began)
	if worked < stretch {
		return 0
	}
	worked = min(worked, longestPause)
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
