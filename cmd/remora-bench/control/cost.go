package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/cmd/remora-bench/load"
)

// The traffic, and the calls next to it. The client's processor time counts as
// the control plane's: there is one machine for all.
const (
	trafficBody  = 1 << 10
	trafficUsers = 64 // at most, so that all of their indexes fit
	trafficConns = 16
	callConns    = 8
	callRate     = 200 // a second, of the lighter load
	costAim      = .95
)

// cost measures how many requests pass without calls and with them, in turn. A
// turn with calls is compared with the turns without before and after it.
func (r *run) cost(ctx context.Context, s *load.Server, c *client) error {
	asked := r.corpus.questions()
	traffic := load.Traffic{Size: trafficBody, Conns: trafficConns, Users: min(r.users, trafficUsers), Duration: r.duration}
	if _, err := r.rig.Send(ctx, s, traffic); err != nil { // indexes load
		return err
	}
	for user := range asked {
		if _, err := c.call(ctx, searchFor(user, asked[user][0])); err != nil {
			return err
		}
	}
	loads := []*callLoad{
		{name: "calls without a pause"},
		{name: fmt.Sprintf("calls, %d a second", callRate), rate: callRate},
	}
	without, err := r.rig.Send(ctx, s, traffic)
	if err != nil {
		return err
	}
	base := []load.Flow{without}
	for range r.rounds {
		for _, l := range loads {
			with, err := r.loaded(ctx, s, c, l, traffic, asked)
			if err != nil {
				return err
			}
			if without, err = r.rig.Send(ctx, s, traffic); err != nil {
				return err
			}
			last := base[len(base)-1]
			base = append(base, without)
			l.ratios = append(l.ratios, with.RPS/((last.RPS+without.RPS)/2))
			l.cpu = append(l.cpu, perRequest(with)/((perRequest(last)+perRequest(without))/2))
		}
	}
	s.Kill() // the turns that wait to be stored would take a while
	r.traffic(base)
	for _, l := range loads {
		r.out.add(row{
			what: l.name + ": share of the traffic that is left", measured: cli.Number(middle(l.ratios)), decimals: 3, aim: costAim, atLeast: true,
			note: fmt.Sprintf("%.3f to %.3f", slices.Min(l.ratios), slices.Max(l.ratios)),
		})
		r.out.info(l.name+": processor time for a request, of all processes", middle(l.cpu), 3, "", fmt.Sprintf("%.3f to %.3f; 1 = alone", slices.Min(l.cpu), slices.Max(l.cpu)))
		r.out.info(l.name+": calls answered", float64(len(l.took))/l.lasted.Seconds(), 1, "/s", fmt.Sprintf("%d refused: the store was busy", l.refused.Load()))
		r.out.latency(l.name, l.took, 0)
	}
	return nil
}

// traffic adds what passes without calls.
func (r *run) traffic(flows []load.Flow) {
	var rps, cpu []float64
	for _, f := range flows {
		rps, cpu = append(rps, f.RPS), append(cpu, perRequest(f))
	}
	r.out.info("traffic alone", middle(rps), 0, "requests/s", fmt.Sprintf("%.0f to %.0f", slices.Min(rps), slices.Max(rps)))
	r.out.info("traffic alone: processor time for a request, of all processes", middle(cpu), 0, "us", fmt.Sprintf("%.0f to %.0f", slices.Min(cpu), slices.Max(cpu)))
}

// perRequest is the processor time for a request, in microseconds.
func perRequest(f load.Flow) float64 { return float64(f.CPU.Microseconds()) / float64(f.Requests) }

// callLoad is a load on the control plane, and what came of it.
type callLoad struct {
	name   string
	rate   int       // calls a second; 0 = a closed loop
	ratios []float64 // of the requests a second
	cpu    []float64 // of the processor time for a request
	took   times     // from when a call was due
	lasted time.Duration

	refused atomic.Int64 // calls that a store without processor time did not answer
}

// loaded sends the traffic while the control plane has the load.
func (r *run) loaded(ctx context.Context, s *load.Server, c *client, l *callLoad, traffic load.Traffic, asked questions) (load.Flow, error) {
	calling, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	began := time.Now()
	go func() { failed <- l.run(calling, c, r.corpus.searching(asked), r.corpus.listing("")) }()
	flow, err := r.rig.Send(ctx, s, traffic)
	stop()
	err = errors.Join(err, <-failed)
	l.lasted += time.Since(began)
	return flow, err
}

// run searches and lists in turn until ctx ends.
func (l *callLoad) run(ctx context.Context, c *client, kinds ...func(*rand.Rand) request) error {
	began := time.Now()
	var next atomic.Int64
	parts, failures := make([]times, callConns), make([]error, callConns)
	var all sync.WaitGroup
	for n := range callConns {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(began.UnixNano()), uint64(n)))
			for ctx.Err() == nil {
				k := next.Add(1) - 1
				due := time.Now()
				if l.rate > 0 {
					due = began.Add(time.Duration(k) * time.Second / time.Duration(l.rate))
					select {
					case <-time.After(time.Until(due)):
					case <-ctx.Done():
						return
					}
				}
				_, err := c.call(ctx, kinds[int(k)%len(kinds)](rnd))
				status, refused := errors.AsType[*statusError](err)
				switch {
				case ctx.Err() != nil:
					return
				case refused && status.status == http.StatusServiceUnavailable:
					l.refused.Add(1)
				case err != nil:
					failures[n] = err
					return
				default:
					parts[n] = append(parts[n], time.Since(due))
				}
			}
		})
	}
	all.Wait()
	for _, part := range parts {
		l.took = append(l.took, part...)
	}
	return errors.Join(failures...)
}
