package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/load"
)

const (
	warmCalls = 100
	// verbLimit ends the calls of a slow verb.
	verbLimit = 15 * time.Second
	manyConns = 4
)

// reads measures the verbs while nothing else is going on.
func (r *run) reads(ctx context.Context, s *load.Server, c *client) error {
	asked := r.corpus.questions()
	if err := r.cold(ctx, c, asked); err != nil {
		return err
	}
	if err := r.prepare(ctx, c); err != nil {
		return err
	}
	s.Rest(ctx, settleLimit)
	for _, v := range r.corpus.verbs(asked) {
		for _, conns := range []int{1, manyConns} {
			if _, err := r.measure(ctx, c, v, conns, warmCalls, verbLimit/4); err != nil {
				return err
			}
			t, err := r.measure(ctx, c, v, conns, r.requests, verbLimit)
			if err != nil {
				return err
			}
			name := v.name
			if conns > 1 {
				name += fmt.Sprintf(", %d at a time", conns)
			}
			r.out.latency(name, t, v.aim)
		}
		s.Rest(ctx, settleLimit)
	}
	return nil
}

// cold measures the first search of each user, for which the index loads.
func (r *run) cold(ctx context.Context, c *client, asked questions) error {
	var t times
	for user := range asked {
		took, err := c.call(ctx, searchFor(user, asked[user][0]))
		if err != nil {
			return err
		}
		t = append(t, took)
	}
	r.out.latency("search, the first of a user", t, 0)
	return nil
}

// prepare gives some memories a history, and some users entries.
func (r *run) prepare(ctx context.Context, c *client) error {
	for user := range r.corpus.warm() {
		for k := range editedEach * editsEach {
			body := fmt.Sprintf(`{"tags": ["edited-%d"], "why": "the bench"}`, k)
			path := "/v1/memories/" + r.corpus.id(user, r.corpus.edited(k)) + "?user=" + load.User(user)
			if _, err := c.call(ctx, request{method: "PATCH", path: path, body: body, want: 200}); err != nil {
				return err
			}
		}
		for k := range entriesEach {
			path := fmt.Sprintf("/v1/entries/key-%02d?user=%s", k, load.User(user))
			body := fmt.Sprintf(`{"value": "none yet", "ttl": %d}`, entryTTL)
			if _, err := c.call(ctx, request{method: "PUT", path: path, body: body}); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure makes calls over some connections, in a closed loop, as many as fit
// into limit.
func (r *run) measure(ctx context.Context, c *client, v verb, conns, calls int, limit time.Duration) (times, error) {
	end := time.Now().Add(limit)
	parts, failures := make([]times, conns), make([]error, conns)
	var left atomic.Int64
	left.Store(int64(calls))
	var all sync.WaitGroup
	for n := range conns {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(conns), uint64(n)))
			for left.Add(-1) >= 0 && time.Now().Before(end) && ctx.Err() == nil {
				next := time.Now().Add(v.pace * time.Duration(conns))
				took, err := c.call(ctx, v.make(rnd))
				if err != nil {
					failures[n] = fmt.Errorf("%s: %w", v.name, err)
					return
				}
				parts[n] = append(parts[n], took)
				if v.pace > 0 {
					time.Sleep(time.Until(next))
				}
			}
		})
	}
	all.Wait()
	var t times
	for _, part := range parts {
		t = append(t, part...)
	}
	return t, errors.Join(errors.Join(failures...), ctx.Err())
}
