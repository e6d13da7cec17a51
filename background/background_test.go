package background

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPause guards that work pauses for as long as it has run, within limits.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Begin()
		for _, tt := range []struct{ worked, want time.Duration }{
			{pauseAfter / 2, 0}, {pauseAfter/2 - 1, 0}, {1, pauseAfter}, {pauseAfter + 1, pauseAfter + 1}, {time.Second, maxPause},
		} {
			time.Sleep(tt.worked)
			begun := time.Now()
			got := w.Pause(t.Context())
			if paused := time.Since(begun); got != tt.want || paused != tt.want {
				t.Errorf("after %v more: got %v, paused %v, want %v", tt.worked, got, paused, tt.want)
			}
		}
	})
}

// TestPauseEndsWithContext guards that a pause ends early when its context
// does.
func TestPauseEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), pauseAfter/2+maxPause)
		defer cancel()
		w := Begin()
		time.Sleep(maxPause)
		begun := time.Now()
		w.Pause(ctx)
		if took := time.Since(begun); took != pauseAfter/2 {
			t.Errorf("paused for %v, want %v", took, pauseAfter/2)
		}
	})
}

// TestWaitingIsNotWork guards that the work gets at least a fifth of the time
// on a busy machine, and that its waits do not count as work.
func TestWaitingIsNotWork(t *testing.T) {
	w := Begin()
	begun := w.began
	for _, tt := range []struct{ wait, turn time.Duration }{
		{0, yieldAfter}, {yieldAfter * waitShare, yieldAfter}, {12 * time.Millisecond, 3 * time.Millisecond}, {time.Microsecond, yieldAfter},
	} {
		from := w.yielded.Add(w.turn)
		begun = begun.Add(tt.wait)
		w.waited(from, from.Add(tt.wait))
		if want := (Work{begun, from.Add(tt.wait), tt.turn}); w != want {
			t.Errorf("after %v: got %+v, want %+v", tt.wait, w, want)
		}
	}
}
