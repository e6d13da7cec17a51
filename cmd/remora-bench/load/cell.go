package load

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
)

// cell is one kind of traffic with which all targets are measured.
type cell struct {
	api      api
	forward  bool // over TLS, to the targets of the forward listener
	size     int  // of the request body, in bytes
	conns    int
	rate     float64 // requests a second of an open loop; 0 = closed loop
	script   replyScript
	users    int
	rounds   int
	duration time.Duration // per target and round
	ends     bool          // the target is stopped right after: it does not settle, and its CPU is unknown
}

// name is the cell's name in reports, e.g. "json-16KiB-c64-r500" or
// "forward-messages-sse-1KiB-c1".
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

// settleLimit limits how long a target may work after its last response, e.g.
// on its disk.
const settleLimit = 3 * time.Second

// figures are what one target reached in one round, or the medians of all
// rounds. NaN = not known. Times are in microseconds.
type figures struct {
	RPS        cli.Number `json:"rps"`
	P50        cli.Number `json:"p50_us"`
	P99        cli.Number `json:"p99_us"`
	First      cli.Number `json:"first_byte_us"` // median until the first byte of the body
	CPU        cli.Number `json:"cpu_s_per_10k"` // of the target's own process, what it does after the last response included
	RSS        cli.Number `json:"rss_mib"`
	DelayP99   cli.Number `json:"event_delay_p99_us"`
	DelayMax   cli.Number `json:"event_delay_max_us"`
	AddedP50   cli.Number `json:"added_p50_us"` // above direct
	AddedP99   cli.Number `json:"added_p99_us"`
	AddedFirst cli.Number `json:"added_first_byte_us"`
	// Ratios to the tuned bare ReverseProxy in the same round, and what is
	// above its figures.
	RatioRPS      cli.Number `json:"ratio_rps"`
	RatioCPU      cli.Number `json:"ratio_cpu"`
	RatioP50      cli.Number `json:"ratio_p50"`
	RatioP99      cli.Number `json:"ratio_p99"`
	RatioFirst    cli.Number `json:"ratio_first_byte"`
	RatioAddedP50 cli.Number `json:"ratio_added_p50"`
	OverP50       cli.Number `json:"-"`
	OverP99       cli.Number `json:"-"`
	OverDelayP99  cli.Number `json:"-"`
	// For the forward listener only: its time per request (the inverse of the
	// throughput) and its CPU per request relative to the reverse listener's in
	// the same round, unchanged, and with what TLS towards the client adds to
	// the ReverseProxy's.
	TimeReverse    cli.Number `json:"time_to_reverse"`
	TimeReverseTLS cli.Number `json:"time_to_reverse_tls"`
	CPUReverse     cli.Number `json:"cpu_to_reverse"`
	CPUReverseTLS  cli.Number `json:"cpu_to_reverse_tls"`
}

// each lists the fields.
func (f *figures) each() []*cli.Number {
	v := reflect.ValueOf(f).Elem()
	all := make([]*cli.Number, v.NumField())
	for i := range all {
		all[i] = v.Field(i).Addr().Interface().(*cli.Number)
	}
	return all
}

// mergeFigures returns the median over rounds of every figure, except the
// longest delay, of which the maximum is kept.
func mergeFigures(rounds []figures) figures {
	var out figures
	values := make([]float64, len(rounds))
	for k, field := range out.each() {
		for i := range rounds {
			values[i] = float64(*rounds[i].each()[k])
		}
		*field = cli.Number(median(values))
	}
	for _, r := range rounds {
		if r.DelayMax > out.DelayMax {
			out.DelayMax = r.DelayMax
		}
	}
	return out
}

// cellResult is what one target reached in one cell.
type cellResult struct {
	Cell   string `json:"cell"`
	Target string `json:"target"`
	figures
	Events    int            `json:"events"`
	Merged    int            `json:"merged_reads"`
	Requests  int            `json:"requests"`
	Errors    int            `json:"errors"`
	LastError string         `json:"last_error,omitempty"`
	Late      int            `json:"late"`
	Statuses  map[string]int `json:"statuses"`
}

// measureCell runs all targets in turn, round after round, so that other
// activity of the machine affects all of them alike.
func (b *bed) measureCell(ctx context.Context, c cell, targets []target) ([]cellResult, error) {
	results := make([]cellResult, len(targets))
	rounds := make([][]figures, len(targets))
	for i, t := range targets {
		results[i] = cellResult{Cell: c.name(), Target: t.name, Statuses: map[string]int{}}
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
	r.Requests += m.requests
	r.Errors += m.errors
	if m.lastError != nil {
		r.LastError = m.lastError.Error()
	}
	r.Late += m.late
	r.Events += m.events
	r.Merged += m.merged
	for s, n := range m.statuses {
		r.Statuses[s] += n
	}
}

// measure is one target's turn in one round.
func (b *bed) measure(ctx context.Context, c cell, t target) (*measured, figures, error) {
	tpl, err := newRequestTemplate(requestSpec{api: c.api, host: t.host(), memory: t.memory, size: c.size, script: c.script}, prose.New(5))
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
		route: t.route, template: tpl, script: c.script, conns: c.conns, rate: c.rate,
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
	if t.proc != nil && !c.ends {
		t.proc.settle(ctx, settleLimit)
		after := t.proc.usage()
		if t.proc.ended() { // reported with the errors
			return m, f, nil
		}
		f.CPU = cli.Number((after.cpu - before.cpu).Seconds() / float64(m.requests) * 10_000)
		f.RSS = mib(after.rss)
	}
	return m, f, nil
}

func micros(d time.Duration) cli.Number { return cli.Number(d) / cli.Number(time.Microsecond) }

func (m *measured) figures() figures {
	f := unknownFigures()
	f.RPS = cli.Number(float64(m.requests) / m.elapsed.Seconds())
	if m.latency.count() > 0 {
		f.P50, f.P99, f.First = micros(m.latency.quantile(.5)), micros(m.latency.quantile(.99)), micros(m.first.quantile(.5))
	}
	if m.delays.count() > 0 {
		f.DelayP99, f.DelayMax = micros(m.delays.quantile(.99)), micros(m.delays.max)
	}
	return f
}

// compare fills in the figures that relate the targets of one round to direct
// and to the ReverseProxy.
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
		f.AddedP50 = f.P50 - direct.P50
		f.AddedP99 = f.P99 - direct.P99
		f.AddedFirst = f.First - direct.First
		f.RatioRPS = f.RPS / reverse.RPS
		f.RatioCPU = f.CPU / reverse.CPU
		f.RatioP50 = f.P50 / reverse.P50
		f.RatioP99 = f.P99 / reverse.P99
		f.RatioFirst = f.First / reverse.First
		f.RatioAddedP50 = f.AddedP50 / (reverse.P50 - direct.P50)
		f.OverP50 = f.P50 - reverse.P50
		f.OverP99 = f.P99 - reverse.P99
		f.OverDelayP99 = f.DelayP99 - reverse.DelayP99
		own, plain := unknownFigures(), by[targetPlain]
		if targets[i].name == targetForward {
			own = by[targetReverseListener]
		}
		f.TimeReverse = own.RPS / f.RPS
		f.TimeReverseTLS = 1 / f.RPS / (1/own.RPS + 1/reverse.RPS - 1/plain.RPS)
		f.CPUReverse = f.CPU / own.CPU
		f.CPUReverseTLS = f.CPU / (own.CPU + reverse.CPU - plain.CPU)
	}
}

func unknownFigures() figures {
	var f figures
	for _, field := range f.each() {
		*field = cli.Number(math.NaN())
	}
	return f
}
