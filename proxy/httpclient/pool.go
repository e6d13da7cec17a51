package httpclient

import (
	"sync"
	"time"
)

// pool keeps the idle connections to one upstream. The most recently used one
// is taken first, so that those left over from a burst age and are closed. At
// max, a connection that is returned is closed.
type pool struct {
	max     int
	timeout time.Duration // after which an idle connection is closed

	mu    sync.Mutex
	idle  []*conn     // longest idle first
	timer *time.Timer // runs reap; nil = nothing is idle
}

// take returns a usable connection, or nil.
func (p *pool) take() *conn {
	for {
		p.mu.Lock()
		last := len(p.idle) - 1
		if last < 0 {
			p.mu.Unlock()
			return nil
		}
		c := p.idle[last]
		p.idle[last] = nil
		p.idle = p.idle[:last]
		p.mu.Unlock()
		if time.Since(c.idleSince) < p.timeout && c.silent() {
			c.reused = true
			return c
		}
		c.close()
	}
}

// put returns c to the pool. It must hold no buffer.
func (p *pool) put(c *conn) {
	c.idleSince = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= p.max {
		c.close()
		return
	}
	p.idle = append(p.idle, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.timeout, p.reap)
	}
}

// reap closes what has been idle for too long, and runs again for the rest.
func (p *pool) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.idle) && time.Since(p.idle[old].idleSince) >= p.timeout {
		p.idle[old].close()
		old++
	}
	n := copy(p.idle, p.idle[old:])
	clear(p.idle[n:])
	p.idle = p.idle[:n]
	if n == 0 {
		p.timer = nil
		return
	}
	p.timer.Reset(max(time.Until(p.idle[0].idleSince.Add(p.timeout)), time.Millisecond))
}

// closeAll closes all idle connections.
func (p *pool) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.close()
	}
	p.idle = nil
}
