package httpclient

import (
	"sync"
	"sync/atomic"
	"time"
)

// pool keeps the idle connections to one upstream. The most recently used one
// is taken first, so that those left over from a burst age and are closed. At
// max, a connection that is returned is closed.
type pool struct {
	max     int
	timeout time.Duration // after which an idle connection is closed
	kept    atomic.Int64  // see keptFor; 0 = timeout
	learned atomic.Int64  // when kept was set, in nanoseconds

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
		idle := time.Since(c.idleSince)
		if idle < p.keptFor() && c.silent() {
			c.reused = true
			return c
		} else if idle < p.timeout {
			p.endedAfter(idle)
		}
		c.close()
	}
}

// minKept is the shortest time for which idle connections are kept, whatever an
// upstream does.
const minKept = 250 * time.Millisecond

// relearn is after how long an upstream is trusted again: it may only have been
// restarted.
const relearn = 10 * time.Minute

// keptFor is how long a connection may be idle to be taken: timeout, or less
// for an upstream that closes its connections earlier, so that few requests
// cross with that.
func (p *pool) keptFor() time.Duration {
	if kept := time.Duration(p.kept.Load()); kept > 0 && time.Now().UnixNano()-p.learned.Load() < int64(relearn) {
		return kept
	}
	return p.timeout
}

// endedAfter notes how long a connection had been idle that the upstream closed
// meanwhile.
func (p *pool) endedAfter(idle time.Duration) {
	if kept := max(idle*3/4, minKept); kept < p.keptFor() {
		p.learned.Store(time.Now().UnixNano())
		p.kept.Store(int64(kept))
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
