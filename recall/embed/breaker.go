package embed

import (
	"sync"
	"time"
)

const (
	failuresToOpen = 3 // in a row
	// A breaker that opens stays open for minCooldown, then twice as long each
	// time, at most maxCooldown.
	minCooldown = 5 * time.Second
	maxCooldown = 5 * time.Minute
)

// breaker keeps queries away from a server that fails or is too slow for the
// path of a request. Closed, it lets all pass. Open, it lets none pass until
// its cooldown is over, then one, the probe, for which nobody waits. If the
// probe is answered in the time that its caller had, the breaker closes;
// otherwise it stays open for twice as long.
type breaker struct {
	mu       sync.Mutex
	failures int // in a row
	open     bool
	probing  bool
	cooldown time.Duration // of the last opening
	until    time.Time
}

// allow reports whether a query may be sent, and whether it is the probe.
func (b *breaker) allow(now time.Time) (ok, probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true, false
	}
	if b.probing || now.Before(b.until) {
		return false, false
	}
	b.probing = true
	return true, true
}

// succeeded notes a response in time, and reports whether that closed the
// breaker.
func (b *breaker) succeeded(probe bool) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open && !probe {
		return false // sent before it opened
	}
	closed = b.open
	b.failures, b.open, b.probing, b.cooldown = 0, false, false, 0
	return closed
}

// failed notes a failure, and reports whether that opened the breaker. after is
// how long the server asked to wait, 0 if it didn't.
func (b *breaker) failed(now time.Time, probe bool, after time.Duration) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open && !probe {
		return false
	}
	b.failures++
	if !b.open && b.failures < failuresToOpen && after == 0 {
		return false
	}
	opened = !b.open
	b.open, b.probing = true, false
	b.cooldown = min(max(2*b.cooldown, minCooldown), maxCooldown)
	b.until = now.Add(min(max(b.cooldown, after), maxCooldown))
	return opened
}

// withdraw ends a probe that showed nothing, as when the client closes.
func (b *breaker) withdraw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
}

func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}
