package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// open sends request k at from + k/rate over whichever connection is free, from
// one thread that writes the request itself: handing it to another goroutine
// would cost as much as a proxy. Where no connection is free the request waits,
// and its latency counts from when it was due.
func (j job) open(ctx context.Context) (*measured, error) {
	w, deadline := j.window()
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	free := make(chan *openConn, j.conns)
	stop := make(chan struct{})
	parts := make([]*measured, 0, j.conns)
	var wg sync.WaitGroup
	conns := make([]*openConn, 0, j.conns)
	for range j.conns {
		c, err := j.dial(ctx, w, deadline)
		if err != nil {
			close(stop)
			for _, o := range conns {
				o.client.close()
			}
			wg.Wait()
			return nil, err
		}
		o := &openConn{client: c, buf: j.template.buffer(), due: make(chan time.Time, 1)}
		m := newMeasured()
		conns, parts = append(conns, o), append(parts, m)
		wg.Go(func() { o.answers(w, j.script.events, m, free, stop) })
		free <- o
	}
	wg.Go(func() { j.signalStart(ctx, w) })
	sent := newMeasured()
	for range j.pace(ctx, w, free, sent) { // each comes back once more, with its answer or its error
		select {
		case <-free:
		case <-ctx.Done():
		}
	}
	close(stop)
	for _, o := range conns {
		o.client.close()
	}
	wg.Wait()
	total := newMeasured()
	total.elapsed = j.duration
	total.merge(sent)
	for i, p := range parts {
		p.takeEvents(conns[i].client.meter)
		total.merge(p)
	}
	return total, nil
}

// openConn is a connection of an open loop. due hands the time of the request
// under way to the reader.
type openConn struct {
	client *client
	buf    *requestBuffer
	due    chan time.Time
	broken atomic.Bool
}

// answers reads responses until the connection or the job ends. It returns the
// connection to free after each request, also after one that failed.
func (o *openConn) answers(w window, events int, m *measured, free chan<- *openConn, stop <-chan struct{}) {
	for {
		r, err := o.client.receive()
		if err != nil || r.close {
			o.broken.Store(true)
		}
		var due time.Time
		select {
		case due = <-o.due:
		default: // ended while nothing was under way, but the next request may be on its way to this connection
			select {
			case due = <-o.due:
			case <-stop:
				return
			}
		}
		if err != nil {
			m.fail(fmt.Errorf("receive: %w", err))
		} else {
			m.record(w, due, r, o.client.eventCount(), events)
		}
		free <- o
		if o.broken.Load() {
			return
		}
	}
}

// pace is the schedule. A broken connection is not used again; requests that
// find none are errors. The number of connections in use at the end is
// returned.
func (j job) pace(ctx context.Context, w window, free chan *openConn, m *measured) int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sharpenTimers()
	first := w.from.Add(-j.warmup)
	step := time.Duration(float64(time.Second) / j.rate)
	total := int((j.warmup + j.duration).Seconds() * j.rate)
	usable := j.conns
	for k := 0; k < total && ctx.Err() == nil; k++ {
		due := first.Add(time.Duration(k) * step)
		for wait := time.Until(due); wait > 0; wait = time.Until(due) {
			preciseSleep(wait)
		}
		var o *openConn
		for o == nil && usable > 0 {
			select {
			case o = <-free:
			case <-ctx.Done():
				return usable
			}
			if o.broken.Load() {
				o = nil
				usable--
			}
		}
		if o == nil {
			m.fail(errors.New("no connection left"))
			continue
		}
		if w.holds(due) && time.Since(due) > time.Millisecond {
			m.late++
		}
		req := j.request(o.buf)
		o.due <- due
		if _, err := o.client.conn.Write(req); err != nil {
			o.client.close() // the reader counts it
		}
	}
	return usable
}
