package background

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Work pauses once it has gone on for a stretch, for as long as it has, within bounds.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Begin()
		for _, tt := range []struct{ worked, want time.Duration }{
			{stretch / 2, 0}, {stretch/2 - 1, 0}, {1, stretch}, {stretch + 1, stretch + 1}, {time.Second, longestPause},
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

// A pause ends with the work.
func TestPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), stretch/2+longestPause)
		defer cancel()
		w := Begin()
		time.Sleep(longestPause)
		begun := time.Now()
		w.Pause(ctx)
		if took := time.Since(begun); took != stretch/2 {
			t.Errorf("paused for %v, want %v", took, stretch/2)
		}
	})
}

// Whatever others do with the processor, the work goes on for a fifth of the time at least, and what it waited is no work.
func TestWaited(t *testing.T) {
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
