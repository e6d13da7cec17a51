package httpclient

import (
	"sync"
	"time"
)

// h1Pool keeps the idle connections to one upstream. The one used last is taken
// first, so that those that a burst left over get old and are closed. At max, a
// connection that comes back is closed.
type h1Pool struct {
	max     int
	timeout time.Duration // a connection idle for so long is closed

	mu    sync.Mutex
	idle  []*h1Conn   // longest idle first
	timer *time.Timer // of reap; nil = nothing is idle
}

// take returns a connection that is fit to be used, or nil.
func (p *h1Pool) take() *h1Conn {
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

// put takes c back, which must hold no buffer.
func (p *h1Pool) put(c *h1Conn) {
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

// reap closes what has been idle for too long, and comes back for the rest.
func (p *h1Pool) reap() {
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
func (p *h1Pool) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.close()
	}
	p.idle = nil
}
