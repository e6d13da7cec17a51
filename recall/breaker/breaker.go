// Package breaker has a circuit breaker: it keeps requests away from a server
// that fails or is too slow for those who wait for its answers.
package breaker

import (
	"sync"
	"time"
)

// FailuresToOpen is how many failures in a row open a breaker.
const FailuresToOpen = 3

// Breaker is a circuit breaker. Closed, it lets all requests pass. Open, it lets
// none pass until its cooldown is over, then one, the probe. If the probe is
// answered in time, the breaker closes; otherwise it stays open for twice as
// long. It is safe for concurrent use.
type Breaker struct {
	// The first cooldown, and the longest. They are not changed later.
	MinCooldown, MaxCooldown time.Duration

	mu       sync.Mutex
	failures int // in a row
	open     bool
	probing  bool
	cooldown time.Duration // of the last opening
	until    time.Time
}

// Allow reports whether a request may be sent, and whether it is the probe.
// Each that is sent is followed by Succeeded, Failed or Withdraw.
func (b *Breaker) Allow(now time.Time) (ok, probe bool) {
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

// Succeeded notes a response in time, and reports whether that closed the
// breaker.
func (b *Breaker) Succeeded(probe bool) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open && !probe {
		return false // sent before it opened
	}
	closed = b.open
	b.failures, b.open, b.probing, b.cooldown = 0, false, false, 0
	return closed
}

// Failed notes a failure, and reports whether that opened the breaker. after is
// how long the server asked to wait, 0 if it didn't.
func (b *Breaker) Failed(now time.Time, probe bool, after time.Duration) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open && !probe {
		return false
	}
	b.failures++
	if !b.open && b.failures < FailuresToOpen && after == 0 {
		return false
	}
	opened = !b.open
	b.open, b.probing = true, false
	b.cooldown = min(max(2*b.cooldown, b.MinCooldown), b.MaxCooldown)
	b.until = now.Add(min(max(b.cooldown, after), b.MaxCooldown))
	return opened
}

// Withdraw notes that a request has shown nothing of the server, as when its
// sender left.
func (b *Breaker) Withdraw(probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
}

// IsOpen reports whether the breaker is open.
func (b *Breaker) IsOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}
