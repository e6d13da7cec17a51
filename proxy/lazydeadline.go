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
	err    error // what Err has said, or will: the first reason that was noticed stays
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
		if c.err != nil {
			c.cancel()
		}
	}
	return c.asked.Done()
}

// Err implements context.Context.
func (c *lazyDeadline) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return c.err
}

// look notices what has ended the context. Needs c.mu.
func (c *lazyDeadline) look() {
	switch {
	case c.err != nil:
	case c.asked != nil:
		c.err = c.asked.Err()
	case c.Context.Err() != nil:
		c.err = c.Context.Err()
	case !time.Now().Before(c.at):
		c.err = context.DeadlineExceeded
	}
}

// end is the cancel function.
func (c *lazyDeadline) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	if c.err == nil {
		c.err = context.Canceled
	}
	if c.cancel != nil {
		c.cancel()
	}
}
