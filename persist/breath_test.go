package persist

import (
	"testing"
	"testing/synctest"
	"time"
)

// Work gives way once it has gone on for a stretch, for as long as it has, within bounds.
func TestBreath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreath()
		for _, tt := range []struct{ worked, want time.Duration }{
			{stretch / 2, 0}, {stretch/2 - 1, 0}, {1, stretch}, {stretch + 1, stretch + 1}, {time.Second, longestBreath},
		} {
			time.Sleep(tt.worked)
			begun := time.Now()
			got := b.take(t.Context())
			if paused := time.Since(begun); got != tt.want || paused != tt.want {
				t.Errorf("after %v more: got %v, paused %v, want %v", tt.worked, got, paused, tt.want)
			}
		}
	})
}

// Nobody who waits, and no queue, is kept waiting by it.
func TestPressed(t *testing.T) {
	p := &Pipeline{}
	if p.pressed() {
		t.Error("an idle pipeline is pressed")
	}
	for name, press := range map[string]func(*Pipeline){
		"flush":   func(p *Pipeline) { p.hurry = 1 },
		"end":     func(p *Pipeline) { p.closing = true },
		"backlog": func(p *Pipeline) { p.inFlight.turns = backlog + 1 },
	} {
		p := &Pipeline{}
		if press(p); !p.pressed() {
			t.Errorf("%s: not pressed", name)
		}
	}
}

func TestAuditorRestsInAll(t *testing.T) {
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
