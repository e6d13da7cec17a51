package load

import (
	"context"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// dialects measures reading, relative to the ReverseProxy, in the dialects that
// passing does not measure.
func (m *mustRun) dialects(ctx context.Context) error {
	targets, err := m.targets(ctx, []string{targetReverse, targetRead}, nil)
	if err != nil {
		return err
	}
	for _, a := range apis()[1:] {
		c := m.cell(1, 16)
		c.api = a
		r, err := m.results(ctx, c, targets)
		if err != nil {
			return err
		}
		read := r[targetRead]
		m.atLeast(.85, read.RatioRPS, "reading, %s: throughput ratio", c.name())
		m.atLeast(.99, share(read, "injected"), "reading, %s: share of requests that got a memory", c.name())
		m.atMost(0, cli.Number(read.Errors), "reading, %s: errors", c.name())
	}
	return stopTargets(targets, m.report)
}

// forwardListener measures what it adds to a reverse listener over TLS.
// Remora's own speaks plain HTTP, so the ReverseProxy, serving TLS, takes its
// place; the comparison with Remora's is printed for information.
func (m *mustRun) forwardListener(ctx context.Context) error {
	targets, err := m.secureTargets(ctx, forwardTargets())
	if err != nil {
		return err
	}
	c := m.cell(1, 16)
	c.forward = true
	r, err := m.results(ctx, c, targets)
	if err != nil {
		return err
	}
	f := r[targetForward]
	m.atMost(1.25, 1/f.RatioRPS, "forward listener, %s: time per request to the ReverseProxy's over TLS", c.name())
	m.info(f.RatioCPU, "forward listener, %s: CPU per request to the ReverseProxy's over TLS", c.name())
	m.atMost(1.25, f.TimeReverseTLS, "forward listener, %s: time per request to the reverse listener's and what TLS to clients costs the ReverseProxy", c.name())
	m.info(f.CPUReverseTLS, "forward listener, %s: CPU per request to the same", c.name())
	m.info(f.TimeReverse, "forward listener, %s: time per request to the reverse listener's, plain HTTP to clients", c.name())
	m.info(f.CPUReverse, "forward listener, %s: CPU per request to the same", c.name())
	m.atLeast(1, share(f, "off"), "forward listener, %s: share of requests that were intercepted", c.name()) // a tunnel has no status
	m.atMost(0, cli.Number(f.Errors), "forward listener, %s: errors", c.name())
	return stopTargets(targets, m.report)
}
