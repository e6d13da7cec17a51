package persist

import (
	"context"
	"time"
)

// What follows a reply gives way to requests: after a stretch of work it pauses for as long, since on a small machine a
// request that comes meanwhile may find every processor taken, and the system lets whoever runs go on for a millisecond or
// more.
const (
	stretch       = time.Millisecond
	longestBreath = 5 * time.Millisecond // a round of audits holds the gate meanwhile
)

// breath is some work that gives way. It begins when it is made.
type breath struct {
	at time.Time // when the work began, or went on
}

func newBreath() breath { return breath{at: time.Now()} }

// take pauses where the work has gone on for a stretch, and returns for how long.
func (b *breath) take(work context.Context) time.Duration {
	worked := time.Since(b.at)
	if worked < stretch {
		return 0
	}
	worked = min(worked, longestBreath)
	pause(worked, nil, nil, work.Done())
	b.at = time.Now()
	return worked
}

// pressed says whether what is under way must not pause: someone waits for it, or turns queue up.
func (p *Pipeline) pressed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hurry > 0 || p.closing || p.inFlight.turns > backlog
}
