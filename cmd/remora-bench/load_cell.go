package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"
)

// cell is one kind of traffic that all targets are measured with.
type cell struct {
	api      api
	forward  bool // over TLS, to the targets of the forward door
	size     int  // of the request body, in bytes
	conns    int
	rate     float64 // requests a second of an open loop; 0 = closed loop
	script   replyScript
	users    int
	rounds   int
	duration time.Duration // per target and round
}

// name is the cell's name in reports, e.g. "json-16KiB-c64-r500" or "forward-messages-sse-1KiB-c1".
func (c cell) name() string {
	mode := "json"
	if c.script.events > 0 {
		mode = "sse"
	}
	s := fmt.Sprintf("%s-%dKiB-c%d", mode, c.size>>10, c.conns)
	if c.api.name != apis()[0].name {
		s = c.api.name + "-" + s
	}
	if c.forward {
		s = "forward-" + s
	}
	if c.rate > 0 {
		s += fmt.Sprintf("-r%g", c.rate)
	}
	return s
}

// warmup precedes every measurement: connections, pools and indexes fill in it.
func (c cell) warmup() time.Duration { return min(c.duration/4, time.Second) + 100*time.Millisecond }

// settleLimit bounds how long a target may go on working after its last response, e.g. on its disk.
const settleLimit = 3 * time.Second

// figures are what one target reached in one round, or the medians of all rounds. NaN = not known.
type figures struct {
	rps        float64
	p50, p99   float64 // latency, us
	first      float64 // median until the first byte of the body, us
	cpu        float64 // seconds of the target's own process per 10,000 requests, what it does after the last response included
	rss        float64 // MiB
	delayP99   float64 // of events, us
	delayMax   float64
	addedP50   float64 // above direct, us
	addedP99   float64
	addedFirst float64
	// Ratios to the tuned bare ReverseProxy in the same round.
	ratioRPS, ratioCPU, ratioP50, ratioP99, ratioFirst float64
	ratioAddedP50                                      float64
	overP50, overP99                                   float64 // above the ReverseProxy's, us
	overDelayP99                                       float64
	// Of the forward door alone: its time per request (the inverse of the throughput) and its CPU per request to those of
	// the reverse door in the same round, as they are, and with what TLS towards the client adds to the ReverseProxy's.
	timeReverse, timeReverseTLS, cpuReverse, cpuReverseTLS float64
}

// mergeFigures gives the median over rounds of every figure but the longest delay.
func mergeFigures(rounds []figures) figures {
	var out figures
	pick := func(field func(*figures) *float64) {
		values := make([]float64, len(rounds))
		for i := range rounds {
			values[i] = *field(&rounds[i])
		}
		*field(&out) = median(values)
	}
	for _, field := range figureFields {
		pick(field)
	}
	for _, r := range rounds { // the one that is not a median: no round's longest delay may get lost
		if r.delayMax > out.delayMax {
			out.delayMax = r.delayMax
		}
	}
	return out
}

var figureFields = []func(*figures) *float64{
	func(f *figures) *float64 { return &f.rps },
	func(f *figures) *float64 { return &f.p50 },
	func(f *figures) *float64 { return &f.p99 },
	func(f *figures) *float64 { return &f.first },
	func(f *figures) *float64 { return &f.cpu },
	func(f *figures) *float64 { return &f.rss },
	func(f *figures) *float64 { return &f.delayP99 },
	func(f *figures) *float64 { return &f.delayMax },
	func(f *figures) *float64 { return &f.addedP50 },
	func(f *figures) *float64 { return &f.addedP99 },
	func(f *figures) *float64 { return &f.addedFirst },
	func(f *figures) *float64 { return &f.ratioRPS },
	func(f *figures) *float64 { return &f.ratioCPU },
	func(f *figures) *float64 { return &f.ratioP50 },
	func(f *figures) *float64 { return &f.ratioP99 },
	func(f *figures) *float64 { return &f.ratioFirst },
	func(f *figures) *float64 { return &f.ratioAddedP50 },
	func(f *figures) *float64 { return &f.overP50 },
	func(f *figures) *float64 { return &f.overP99 },
	func(f *figures) *float64 { return &f.overDelayP99 },
	func(f *figures) *float64 { return &f.timeReverse },
	func(f *figures) *float64 { return &f.timeReverseTLS },
	func(f *figures) *float64 { return &f.cpuReverse },
	func(f *figures) *float64 { return &f.cpuReverseTLS },
}

// cellResult is what one target reached in one cell.
type cellResult struct {
	cell   string
	target string
	figures
	requests  int
	errors    int
	lastError error
	late      int
	events    int
	merged    int
	statuses  map[string]int
}

// measureCell runs all targets in turn, round after round, so that whatever else the machine does in between falls on
// all of them alike.
func (b *bed) measureCell(ctx context.Context, c cell, targets []target) ([]cellResult, error) {
	results := make([]cellResult, len(targets))
	rounds := make([][]figures, len(targets))
	for i, t := range targets {
		results[i] = cellResult{cell: c.name(), target: t.name, statuses: map[string]int{}}
	}
	for range c.rounds {
		now := make([]figures, len(targets))
		for i, t := range targets {
			m, f, err := b.measure(ctx, c, t)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.name(), t.name, err)
			}
			results[i].take(m)
			now[i] = f
		}
		compare(targets, now)
		for i := range now {
			rounds[i] = append(rounds[i], now[i])
		}
	}
	for i := range results {
		results[i].figures = mergeFigures(rounds[i])
	}
	return results, nil
}

func (r *cellResult) take(m *measured) {
	r.requests += m.requests
	r.errors += m.errors
	if m.lastError != nil {
		r.lastError = m.lastError
	}
	r.late += m.late
	r.events += m.events
	r.merged += m.merged
	for s, n := range maps.All(m.statuses) {
		r.statuses[s] += n
	}
}

// measure is one target's turn in one round.
func (b *bed) measure(ctx context.Context, c cell, t target) (*measured, figures, error) {
	tpl, err := newRequestTemplate(requestSpec{api: c.api, host: t.host(), memory: t.memory, size: c.size, script: c.script}, newTexts(5))
	if err != nil {
		return nil, figures{}, err
	}
	users := c.users
	if t.users > 0 {
		users = t.users
	}
	if err := b.introduce(ctx, t, users); err != nil {
		return nil, figures{}, err
	}
	var before usage
	j := job{
		door: t.door, template: tpl, script: c.script, conns: c.conns, rate: c.rate,
		warmup: c.warmup(), duration: c.duration, users: users, messages: b.messages(t), serial: &b.serial,
	}
	if t.proc != nil {
		j.started = func() { before = t.proc.usage() }
	}
	m, err := j.run(ctx)
	if err != nil {
		return nil, figures{}, err
	}
	f := m.figures()
	if t.proc != nil {
		t.proc.settle(ctx, settleLimit)
		after := t.proc.usage()
		if t.proc.ended() { // the errors tell of it
			return m, f, nil
		}
		f.cpu = (after.cpu - before.cpu).Seconds() / float64(m.requests) * 10_000
		f.rss = float64(after.rss) / (1 << 20)
	}
	return m, f, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (m *measured) figures() figures {
	nan := math.NaN()
	f := figures{
		rps: float64(m.requests) / m.elapsed.Seconds(),
		p50: micros(m.latency.quantile(.5)), p99: micros(m.latency.quantile(.99)),
		first: micros(m.first.quantile(.5)),
		cpu:   nan, rss: nan, delayP99: nan, delayMax: nan,
	}
	if m.latency.n == 0 {
		f.p50, f.p99, f.first = nan, nan, nan
	}
	if m.delays.n > 0 {
		f.delayP99, f.delayMax = micros(m.delays.quantile(.99)), micros(m.delays.max)
	}
	return f
}

// compare fills in what relates the targets of one round to direct and to the ReverseProxy.
func compare(targets []target, now []figures) {
	by := map[string]figures{}
	for _, name := range forwardTargets() {
		by[name] = unknownFigures()
	}
	for i, t := range targets {
		by[t.name] = now[i]
	}
	direct, reverse := by[targetDirect], by[targetReverse]
	for i := range now {
		f := &now[i]
		f.addedP50 = f.p50 - direct.p50
		f.addedP99 = f.p99 - direct.p99
		f.addedFirst = f.first - direct.first
		f.ratioRPS = f.rps / reverse.rps
		f.ratioCPU = f.cpu / reverse.cpu
		f.ratioP50 = f.p50 / reverse.p50
		f.ratioP99 = f.p99 / reverse.p99
		f.ratioFirst = f.first / reverse.first
		f.ratioAddedP50 = f.addedP50 / (reverse.p50 - direct.p50)
		f.overP50 = f.p50 - reverse.p50
		f.overP99 = f.p99 - reverse.p99
		f.overDelayP99 = f.delayP99 - reverse.delayP99
		own, plain := unknownFigures(), by[targetPlain]
		if targets[i].name == targetForward {
			own = by[targetDoor]
		}
		f.timeReverse = own.rps / f.rps
		f.timeReverseTLS = 1 / f.rps / (1/own.rps + 1/reverse.rps - 1/plain.rps)
		f.cpuReverse = f.cpu / own.cpu
		f.cpuReverseTLS = f.cpu / (own.cpu + reverse.cpu - plain.cpu)
	}
}

func unknownFigures() figures {
	var f figures
	for _, field := range figureFields {
		*field(&f) = math.NaN()
	}
	return f
}
