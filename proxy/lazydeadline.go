package proxy

import (
	"context"
	"sync"
	"time"
)

// lazyDeadline is context.WithDeadline for work that seldom waits: it takes no timer and does not register with its parent
// before somebody asks for Done.
type lazyDeadline struct {
	context.Context // the parent
	at              time.Time

	mu     sync.Mutex
	asked  context.Context // nil before Done
	cancel context.CancelFunc
	over   bool
}

func withLazyDeadline(parent context.Context, at time.Time) *lazyDeadline {
	return &lazyDeadline{Context: parent, at: at}
}

// Deadline implements context.Context.
func (c *lazyDeadline) Deadline() (time.Time, bool) {
	if at, ok := c.Context.Deadline(); ok && at.Before(c.at) {
		return at, true
	}
	return c.at, true
}

// Done implements context.Context.
func (c *lazyDeadline) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked, c.cancel = context.WithDeadline(c.Context, c.at)
		if c.over {
			c.cancel()
		}
	}
	return c.asked.Done()
}

// Err implements context.Context.
func (c *lazyDeadline) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.asked != nil:
		return c.asked.Err()
	case c.Context.Err() != nil:
		return c.Context.Err()
	case c.over:
		return context.Canceled
	case !time.Now().Before(c.at):
		return context.DeadlineExceeded
	}
	return nil
}

// end is the cancel function.
func (c *lazyDeadline) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.cancel != nil {
		c.cancel()
	}
}
