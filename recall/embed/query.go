package embed

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// maxCalls is the most queries in flight. Beyond that Query returns ErrOpen.
const maxCalls = 16

// The breaker's first cooldown, and its longest. Nobody waits for its probe.
const (
	minCooldown = 5 * time.Second
	maxCooldown = 5 * time.Minute
)

// queryKey identifies a query's text, which is not kept.
type queryKey [sha256.Size]byte

// call is one request for a query's vector. Callers with the same query share
// it.
type call struct {
	done   chan struct{}
	vector []float32
	err    error
	late   bool // a caller's deadline has passed; guarded by Client.mu
}

// Query returns the vector of a query, which the caller must not change. It
// returns when ctx ends; the request continues then until QueryTimeout, and its
// response gets into the cache. A deadline that passes counts as a failure of
// the server: one that is always late costs the path no more than one that is
// dead.
func (c *Client) Query(ctx context.Context, text string) ([]float32, error) {
	key := queryKey(sha256.Sum256([]byte(text)))
	k, vector, err := c.join(ctx, key, text)
	switch {
	case err != nil:
		return nil, err
	case k == nil:
		c.hits.Add(1)
		return vector, nil
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		select {
		case <-k.done: // both at once
		default:
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				c.giveUp(k)
			}
			return nil, ctx.Err()
		}
	}
	return k.vector, k.err
}

// join returns the vector if it is cached, or else the call that gets it, which
// it starts if necessary.
func (c *Client) join(ctx context.Context, key queryKey, text string) (*call, []float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, errClosed
	}
	if v, ok := c.cache.get(key); ok {
		return nil, v, nil
	}
	if k, ok := c.calls[key]; ok {
		return k, nil, nil
	}
	if len(c.calls) >= maxCalls {
		return nil, nil, ErrOpen
	}
	now := time.Now()
	ok, probe := c.breaker.Allow(now)
	if !ok {
		return nil, nil, ErrOpen
	}
	inTime := c.cfg.QueryTimeout
	if at, ok := ctx.Deadline(); ok {
		inTime = min(inTime, at.Sub(now))
	}
	k := &call{done: make(chan struct{})}
	c.calls[key] = k
	c.requests.Go(func() { c.run(k, key, text, probe, inTime) })
	if probe {
		return nil, nil, ErrOpen
	}
	return k, nil, nil
}

// run makes the request. inTime is how long its first caller can wait.
func (c *Client) run(k *call, key queryKey, text string, probe bool, inTime time.Duration) {
	ctx, cancel := context.WithTimeout(c.life, c.cfg.QueryTimeout)
	defer cancel()
	began := time.Now()
	vectors, err := c.request(ctx, []string{c.cfg.QueryPrefix + text})
	if err == nil && vectors[0] == nil {
		err = ErrResponse
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, key)
	if k.err = err; err == nil {
		k.vector = vectors[0]
		c.cache.put(key, k.vector)
	}
	close(k.done)
	switch {
	case c.life.Err() != nil:
		c.breaker.Withdraw(probe)
	case isAboutTexts(err): // the server is well, and may accept other texts
		c.breaker.Withdraw(probe)
	case err != nil && (probe || !k.late):
		c.fail(probe, retryAfter(err), err)
	case err != nil: // counted when the caller left
	case probe && time.Since(began) > inTime:
		c.fail(true, 0, errLate)
	case !k.late:
		if c.breaker.Succeeded(probe) {
			c.log.Info("embeddings server has recovered", "host", c.Host())
		}
	}
}

var errLate = errors.New("responses came too late")

// giveUp counts, once for each call, that its response did not come in time.
func (c *Client) giveUp(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.late {
		k.late = true
		c.fail(false, 0, errLate)
	}
}

func (c *Client) fail(probe bool, after time.Duration, why error) {
	if c.breaker.Failed(time.Now(), probe, after) {
		c.log.Warn("embeddings server failed or is too slow: queries are answered without it for now", "host", c.Host(), "error", why)
	}
}
