package embed

import (
	"sync"
	"time"
)

// How a breaker decides.
const (
	failuresToOpen = 3 // in a row
	firstCooldown  = 5 * time.Second
	longestRest    = 5 * time.Minute
)

// breaker keeps queries from a server that fails or is too slow for the path. Closed, it lets all through. Open, it lets
// through none until its cooldown has passed, then one, which nobody waits for: if that is answered in the time that its
// caller had, the breaker closes, else it rests twice as long.
type breaker struct {
	mu       sync.Mutex
	failures int // in a row
	open     bool
	probing  bool
	rest     time.Duration // of the last opening
	until    time.Time
}

// allow says whether a query may be sent, and whether it is a probe.
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

// succeeded reports whether it closed the breaker.
func (b *breaker) succeeded(probe bool) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open && !probe {
		return false // sent before it opened
	}
	closed = b.open
	b.failures, b.open, b.probing, b.rest = 0, false, false, 0
	return closed
}

// failed reports whether it opened a closed breaker. after is how long the server asks to be left alone, 0 if it does not.
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
	b.rest = min(max(2*b.rest, firstCooldown), longestRest)
	b.until = now.Add(min(max(b.rest, after), longestRest))
	return opened
}

// withdraw ends a probe that said nothing, as when the client closes.
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
