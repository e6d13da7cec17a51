package recall

import (
	"context"
	"time"
)

// How often a request looks whether a lock that it wants is free.
const (
	firstLook = 20 * time.Microsecond
	lastLook  = time.Millisecond
)

// rlock takes the scope's lock for reading if that is to be had before ctx ends; else the error says why ctx has ended. Whoever
// holds it for long, a request waits no longer than it may.
func (s *scopeIndex) rlock(ctx context.Context) error {
	if s.mu.TryRLock() {
		return nil
	}
	return within(ctx, s.mu.TryRLock)
}

// lock is rlock for writing.
func (s *scopeIndex) lock(ctx context.Context) error {
	if s.mu.TryLock() {
		return nil
	}
	return within(ctx, s.mu.TryLock)
}

// within tries again and again, ever more seldom, until ctx ends.
func within(ctx context.Context, try func() bool) error {
	wait := firstLook
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if try() {
			return nil
		}
		wait = min(2*wait, lastLook)
		timer.Reset(wait)
	}
}
