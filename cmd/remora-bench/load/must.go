package load

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// requirement is one line of what must be reached.
type requirement struct {
	what     string
	measured cli.Number
	limit    cli.Number
	atLeast  bool // or at most
	info     bool // for comparison, not required
}

func (r requirement) met() bool {
	if r.atLeast {
		return r.measured >= r.limit
	}
	return r.measured <= r.limit // never true of NaN: what could not be measured is not met
}

type requirementLine struct {
	Requirement string     `json:"requirement"`
	Measured    cli.Number `json:"measured"`
	AtLeast     cli.Number `json:"at_least"`
	AtMost      cli.Number `json:"at_most"`
	Verdict     string     `json:"verdict"`
}

func (r requirement) verdict() string {
	switch {
	case r.info:
		return "INFO"
	case r.met():
		return "PASS"
	default:
		return "FAIL"
	}
}

func (p report) requirement(r requirement) error {
	nan := cli.Number(math.NaN())
	line := requirementLine{r.what, r.measured, nan, nan, r.verdict()}
	bound := "         "
	switch {
	case r.info:
	case r.atLeast:
		line.AtLeast = r.limit
		bound = fmt.Sprintf(">= %-6g", r.limit)
	default:
		line.AtMost = r.limit
		bound = fmt.Sprintf("<= %-6.4g", r.limit)
	}
	if p.json {
		return p.object(line)
	}
	digits := 3
	if r.limit > 0 && r.limit < .01 {
		digits = 5
	}
	_, err := fmt.Fprintf(p.out, "%s  %10s  %s  %s\n", line.Verdict, r.measured.Text(digits), bound, r.what)
	return err
}

// must measures every requirement, each stage with processes of its own, so
// that none inherits the memory or the backlog of another.
func (b *bed) must(ctx context.Context, o loadOptions, p report) error {
	m := &mustRun{bed: b, o: o, report: p}
	for _, stage := range []func(context.Context) error{
		m.residence, m.passing, m.dialects, m.forwardListener, m.openLoop, m.durable, m.streams,
	} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	if !p.json {
		fmt.Fprintln(p.out)
	}
	failed := 0
	for _, r := range m.found {
		if err := p.requirement(r); err != nil {
			return err
		}
		if !r.info && !r.met() {
			failed++
		}
	}
	if o.strict && failed > 0 {
		return fmt.Errorf("%d of %d requirements not met", failed, len(m.found))
	}
	return nil
}

type mustRun struct {
	*bed
	o      loadOptions
	report report
	found  []requirement
}

func (m *mustRun) atLeast(limit, measured cli.Number, format string, args ...any) {
	m.found = append(m.found, requirement{what: fmt.Sprintf(format, args...), measured: measured, limit: limit, atLeast: true})
}

func (m *mustRun) atMost(limit, measured cli.Number, format string, args ...any) {
	m.found = append(m.found, requirement{what: fmt.Sprintf(format, args...), measured: measured, limit: limit})
}

func (m *mustRun) info(measured cli.Number, format string, args ...any) {
	m.found = append(m.found, requirement{what: fmt.Sprintf(format, args...), measured: measured, info: true})
}

// cell is one of the preset's, in the default dialect: the rounds, duration and
// users of the command line.
func (m *mustRun) cell(kib, conns int) cell {
	return cell{api: apis()[0], size: kib << 10, conns: conns, users: m.o.users, rounds: m.o.rounds, duration: m.o.duration}
}

// results are those of one cell by target; the cell is reported, too.
func (m *mustRun) results(ctx context.Context, c cell, targets []target) (map[string]cellResult, error) {
	all, err := m.measureCell(ctx, c, targets)
	if err != nil {
		return nil, err
	}
	byTarget := make(map[string]cellResult, len(all))
	for _, r := range all {
		byTarget[r.Target] = r
	}
	return byTarget, m.report.cells(all)
}

// passing measures passing through and reading, relative to the ReverseProxy.
func (m *mustRun) passing(ctx context.Context) error {
	targets, err := m.targets(ctx, []string{targetDirect, targetReverse, targetPass, targetRead}, nil)
	if err != nil {
		return err
	}
	for _, want := range []struct {
		kib        int
		pass, read cli.Number
	}{{1, 1.5, .85}, {256, 1.5, .85}} {
		for _, conns := range []int{16, 64} {
			c := m.cell(want.kib, conns)
			r, err := m.results(ctx, c, targets)
			if err != nil {
				return err
			}
			pass, read := r[targetPass], r[targetRead]
			m.atLeast(want.pass, pass.RatioRPS, "passing through, %s: throughput ratio", c.name())
			m.info(pass.RatioCPU, "passing through, %s: CPU per request ratio", c.name())
			m.atLeast(want.read, read.RatioRPS, "reading, %s: throughput ratio", c.name())
			m.atLeast(.99, share(read, "injected"), "reading, %s: share of requests that got a memory", c.name())
			m.atMost(0, cli.Number(pass.Errors+read.Errors), "passing through and reading, %s: errors", c.name())
		}
	}
	return stopTargets(targets, m.report)
}

// share is how many of the answers bore a status of Remora.
func share(r cellResult, status string) cli.Number {
	total := 0
	for _, n := range r.Statuses {
		total += n
	}
	return cli.Number(r.Statuses[status]) / cli.Number(total)
}

// openLoop: everything on, 500 requests a second against an upstream of 20 ms.
func (m *mustRun) openLoop(ctx context.Context) error {
	defer m.counted()()
	targets, err := m.targets(ctx, []string{targetDirect, targetReverse, targetOn}, nil)
	if err != nil {
		return err
	}
	c := m.cell(16, 64)
	c.rate = 500
	c.script.latency = 20 * time.Millisecond
	c.duration = max(c.duration, 5*time.Second) // a p99 of 2,500 requests
	r, err := m.results(ctx, c, targets)
	if err != nil {
		return err
	}
	on := r[targetOn]
	m.atMost(1.3, on.RatioAddedP50, "everything on, %s: added p50 ratio", c.name())
	m.info(on.RatioP50, "everything on, %s: p50 ratio, the upstream's 20 ms included", c.name())
	// Without direct, whose median moves by as much as a proxy adds: idle
	// processors wake late.
	m.info(on.OverP50, "everything on, %s: p50 above the ReverseProxy's, us", c.name())
	m.atMost(1000, on.OverP99, "everything on, %s: p99 above the ReverseProxy's, us", c.name())
	m.atMost(0, cli.Number(on.Errors), "everything on, %s: errors", c.name())
	return m.stopCounted(targets, "everything on, "+c.name())
}

// counted sets Remora's log to the level at which its last line counts what it
// dropped, until the returned function is called.
func (m *mustRun) counted() (restore func()) {
	before := m.logLevel
	m.logLevel = logInfo
	return func() { m.logLevel = before }
}

// stopCounted ends the targets; the last is the one whose drops count.
func (m *mustRun) stopCounted(targets []target, what string) error {
	last := len(targets) - 1
	if err := stopTargets(targets[:last], m.report); err != nil {
		return err
	}
	counters, err := targets[last].stop()
	if err != nil {
		return err
	}
	m.atMost(0, counters.droppedTurns(), "%s: turns dropped", what)
	return m.report.counters(targets[last].name, counters)
}

// durable measures how many turns a second are on the disk, from the first
// request to the end of the process that drained its queue. The process is
// stopped after the last response: audits, which take seconds more, do not
// count and wait for its next start. Once against an upstream of 20 ms, which
// limits 64 connections to 3,200 requests a second, and once, for information,
// as fast as the proxy can.
func (m *mustRun) durable(ctx context.Context) error {
	defer m.counted()()
	for _, latency := range []time.Duration{20 * time.Millisecond, 0} {
		targets, err := m.targets(ctx, []string{targetOn}, nil)
		if err != nil {
			return err
		}
		c := m.cell(1, 64)
		c.rounds, c.duration = 1, max(c.duration, 5*time.Second)
		c.script.latency, c.ends = latency, true
		start := time.Now()
		if _, err := m.results(ctx, c, targets); err != nil {
			return err
		}
		counters, err := targets[0].stop()
		if err != nil {
			return err
		}
		perSecond := counters.persistedTurns() / cli.Number(time.Since(start).Seconds())
		what := fmt.Sprintf("everything on, closed loop, %d users, upstream of %v", c.users, latency)
		if latency > 0 {
			m.atLeast(1800, perSecond, "%s: durable turns a second", what)
			m.atMost(0, counters.droppedTurns(), "%s: turns dropped", what)
		} else {
			m.info(perSecond, "%s: durable turns a second", what)
			m.info(counters.droppedTurns(), "%s: turns dropped", what)
		}
		if err := m.report.counters(targetOn, counters); err != nil {
			return err
		}
	}
	return nil
}

// streams measures the first byte of an event stream, and events that are late
// or arrive together.
func (m *mustRun) streams(ctx context.Context) error {
	targets, err := m.targets(ctx, []string{targetDirect, targetReverse, targetOn}, nil)
	if err != nil {
		return err
	}
	for _, conns := range []int{1, 16} {
		c := m.cell(1, conns)
		c.script.events, c.script.gap = m.o.events, max(m.o.gap, time.Millisecond)
		r, err := m.results(ctx, c, targets)
		if err != nil {
			return err
		}
		on, reverse := r[targetOn], r[targetReverse]
		m.atMost(1.15, on.RatioFirst, "everything on, %s: first byte ratio", c.name())
		// The kernel may wake the reader late under any proxy, the ReverseProxy
		// too. One that holds events back does so all the time.
		m.atMost(max(perEvent(reverse), .002), perEvent(on), "everything on, %s: stalls per event in which events came together", c.name())
		m.atMost(1000, on.OverDelayP99, "everything on, %s: event delay p99 above the ReverseProxy's, us", c.name())
		m.atMost(0, cli.Number(on.Errors), "everything on, %s: errors", c.name())
	}
	return stopTargets(targets, m.report)
}

func perEvent(r cellResult) cli.Number { return cli.Number(r.Merged) / cli.Number(r.Events) }
