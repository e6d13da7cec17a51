package persist

import (
	"testing"
	"time"
)

// TestQueuePressed checks when stages must not pause: if somebody waits, or
// turns queue up.
func TestQueuePressed(t *testing.T) {
	q := &queue{}
	if q.pressed() {
		t.Error("an idle queue is pressed")
	}
	for name, press := range map[string]func(*queue){
		"flush":   func(q *queue) { q.flushing = 1 },
		"end":     func(q *queue) { q.closing = true },
		"backlog": func(q *queue) { q.inFlight.turns = busyTurns + 1 },
	} {
		q := &queue{}
		if press(q); !q.pressed() {
			t.Errorf("%s: not pressed", name)
		}
	}
}

func TestRestCountsPauses(t *testing.T) {
	for _, tt := range []struct {
		worked, breathed time.Duration
		patience         int
		want             time.Duration
	}{
		{10 * time.Millisecond, 0, 3, 30 * time.Millisecond},
		{10 * time.Millisecond, 10 * time.Millisecond, 3, 20 * time.Millisecond}, // it gave way for as long as it worked
		{10 * time.Millisecond, 10 * time.Millisecond, 1, 0},
		{time.Millisecond, 10 * time.Millisecond, 3, 0},
	} {
		if got := restAfter(tt.worked, tt.breathed, tt.patience); got != tt.want {
			t.Errorf("after %v of work, %v of pauses, patience %d: %v, want %v", tt.worked, tt.breathed, tt.patience, got, tt.want)
		}
	}
}
