package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// job is one measurement: what is sent to one target, over how many
// connections, for how long.
type job struct {
	route    route
	template requestTemplate
	script   replyScript
	conns    int
	rate     float64 // requests a second of an open loop; 0 = closed loop: each connection asks as fast as it is answered
	warmup   time.Duration
	duration time.Duration // measured, after the warm-up
	users    int
	messages []string       // newest user messages, which every user goes through in order
	serial   *atomic.Uint64 // numbers the requests of the whole run, so that none is sent twice
	started  func()         // called when the measured time starts, may be nil
}

// Grace that a job gives beyond its time: for the responses under way, and for
// an open loop that has fallen behind.
const jobGrace = 10 * time.Second

// maxJobErrors ends a connection's work, which would otherwise fail again and
// again.
const maxJobErrors = 20

// measured is what a job found. Latencies of an open loop count from the time
// that a request was due, so a stall shows in every request that it held up and
// not in one alone.
type measured struct {
	requests  int // answered within the measured time
	errors    int // not answered, or not with 200, or a stream with events missing
	lastError error
	late      int // sent more than a millisecond after they were due: the generator or all connections were busy
	latency   histogram
	first     histogram // until the first byte of the response body
	delays    histogram // of events on their way
	merged    int       // reads that brought events together which were sent apart
	events    int
	statuses  map[string]int // by X-Remora-Status
	elapsed   time.Duration
}

func (m *measured) merge(other *measured) {
	m.requests += other.requests
	m.errors += other.errors
	if m.lastError == nil {
		m.lastError = other.lastError
	}
	m.late += other.late
	m.latency.merge(&other.latency)
	m.first.merge(&other.first)
	m.delays.merge(&other.delays)
	m.merged += other.merged
	m.events += other.events
	for s, n := range other.statuses {
		m.statuses[s] += n
	}
}

func newMeasured() *measured { return &measured{statuses: map[string]int{}} }

func (m *measured) fail(err error) {
	m.errors++
	m.lastError = err
}

// window is the measured time.
type window struct{ from, to time.Time }

func (w window) holds(t time.Time) bool { return !t.Before(w.from) && t.Before(w.to) }

// record takes one response into account: started is when it was sent (closed
// loop) or due (open loop).
func (m *measured) record(w window, started time.Time, r response, events, want int) {
	if !w.holds(started) {
		return
	}
	switch {
	case r.status != 200:
		m.fail(fmt.Errorf("status %d", r.status))
		return
	case events != want:
		m.fail(fmt.Errorf("%d of %d events", events, want))
		return
	}
	if r.done.Before(w.to) {
		m.requests++
	}
	m.latency.add(r.done.Sub(started))
	m.first.add(r.first.Sub(started))
	if len(r.remora) > 0 {
		m.statuses[string(r.remora)]++
	}
}

// run does the job. The error is that of a target that can't be reached at all;
// what fails later is counted.
func (j job) run(ctx context.Context) (*measured, error) {
	if j.rate > 0 {
		return j.open(ctx)
	}
	return j.closed(ctx)
}

// window of the measured time when the job starts now, and the deadline of
// everything.
func (j job) window() (window, time.Time) {
	from := time.Now().Add(j.warmup)
	to := from.Add(j.duration)
	longest := j.script.latency + time.Duration(j.script.events)*j.script.gap
	return window{from, to}, to.Add(jobGrace + longest)
}

func (j job) signalStart(ctx context.Context, w window) {
	if j.started == nil {
		return
	}
	select {
	case <-time.After(time.Until(w.from)):
		j.started()
	case <-ctx.Done():
	}
}

func (j job) dial(ctx context.Context, w window, deadline time.Time) (*client, error) {
	var meter *eventMeter
	if j.script.events > 0 {
		meter = &eventMeter{gap: j.script.gap, window: w}
	}
	return dialClient(ctx, j.route, deadline, meter)
}

func (j job) request(buf *requestBuffer) []byte {
	n := j.serial.Add(1)
	users := uint64(j.users)
	return buf.patch(n, int(n%users), j.messages[n/users%uint64(len(j.messages))])
}

// closed runs one goroutine per connection.
func (j job) closed(ctx context.Context) (*measured, error) {
	w, deadline := j.window()
	parts := make([]*measured, j.conns)
	unreachable := make([]error, j.conns)
	var wg sync.WaitGroup
	for i := range j.conns {
		parts[i] = newMeasured()
		wg.Go(func() { unreachable[i] = j.closedWorker(ctx, w, deadline, parts[i]) })
	}
	wg.Go(func() { j.signalStart(ctx, w) })
	wg.Wait()
	total := newMeasured()
	total.elapsed = j.duration
	for _, p := range parts {
		total.merge(p)
	}
	return total, errors.Join(errors.Join(unreachable...), ctx.Err())
}

func (j job) closedWorker(ctx context.Context, w window, deadline time.Time, m *measured) error {
	buf := j.template.buffer()
	for first := true; m.errors < maxJobErrors && ctx.Err() == nil && (first || time.Now().Before(w.to)); first = false {
		c, err := j.dial(ctx, w, deadline)
		if err != nil && first {
			return err
		}
		if err != nil {
			m.fail(err)
			continue
		}
		j.askUntil(ctx, c, w, buf, m)
		c.close()
		m.takeEvents(c.meter)
	}
	return nil
}

// askUntil asks over one connection until the time is over or the connection
// is.
func (j job) askUntil(ctx context.Context, c *client, w window, buf *requestBuffer, m *measured) {
	for ctx.Err() == nil {
		req := j.request(buf)
		started := time.Now()
		if !started.Before(w.to) {
			return
		}
		if _, err := c.conn.Write(req); err != nil {
			m.fail(fmt.Errorf("send: %w", err))
			return
		}
		r, err := c.receive()
		if err != nil {
			m.fail(fmt.Errorf("receive: %w", err))
			return
		}
		m.record(w, started, r, c.eventCount(), j.script.events)
		if r.close {
			return
		}
	}
}

func (m *measured) takeEvents(e *eventMeter) {
	if e == nil {
		return
	}
	m.delays.merge(&e.delays)
	m.merged += e.merged
	m.events += int(e.delays.count())
}
