// Package telemetry measures what traces, metrics and logs cost the traffic.
//
// It hides the receiver that they are sent to and the order of the
// measurements. [Run] is the command telemetry. It starts one Remora for each
// way of being observed, each with an empty store, sends them the same traffic
// in turn, and talks to the loopback interface alone. What it starts and writes
// is gone when it returns.
package telemetry

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/cmd/remora-bench/load"
)

// The traffic: short requests with memory on, which feel each microsecond.
const (
	body  = 1 << 10
	users = 64
	conns = 16
)

// scrapeEvery is more often than Prometheus asks by default, so that each
// measurement has a few.
const scrapeEvery = time.Second

// Aims, as shares of the throughput that are lost.
const (
	aimOn  = .15
	aimOff = .02
)

type options struct {
	remora   string
	before   string
	rounds   int
	duration time.Duration
}

// Bounds of the options, so that a run ends.
const (
	maxRounds   = 1000
	maxDuration = 10 * time.Minute
)

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("telemetry", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.remora, "remora", "", "`path` of the remora binary (default: remora next to this one)")
	flags.StringVar(&o.before, "before", "", "`path` of a remora from before a change, to compare one that nobody observes with")
	flags.IntVar(&o.rounds, "rounds", 10, "measurements of each")
	flags.DurationVar(&o.duration, "duration", 3*time.Second, "measured time of each")
	if err := cli.ParseFlags(flags, args); err != nil {
		return o, err
	}
	if o.remora == "" {
		self, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("find remora next to this program: %w", err)
		}
		o.remora = filepath.Join(filepath.Dir(self), "remora")
	}
	var problems []error
	if o.rounds < 1 || o.rounds > maxRounds {
		problems = append(problems, fmt.Errorf("-rounds: must be 1 to %d", maxRounds))
	}
	if o.duration < 100*time.Millisecond || o.duration > maxDuration {
		problems = append(problems, fmt.Errorf("-duration: must be 100ms to %v", maxDuration))
	}
	if len(problems) > 0 {
		return o, cli.UsageError(errors.Join(problems...).Error())
	}
	return o, nil
}

// way is how a Remora is observed, and what was measured of it.
type way struct {
	name   string
	binary string // "" = the one under measurement
	otlp   bool   // traces, metrics and logs are sent
	scrape bool   // metrics are read
	aim    float64

	server *load.Server
	rps    []float64
	cpu    []float64 // processor time for a request, in microseconds
}

// Run measures. It is bounded in time by its options.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "remora-bench-telemetry-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rig, err := load.OpenRig(ctx, o.remora, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.Close()) }()
	var received atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		received.Add(1)
	}))
	defer receiver.Close()

	ways := []*way{
		{name: "nothing is observed", aim: aimOff},
		{name: "metrics are read", scrape: true, aim: aimOn},
		{name: "metrics are read, all is sent by OTLP", scrape: true, otlp: true, aim: aimOn},
	}
	if o.before != "" {
		ways = append(ways, &way{name: "the remora from before", binary: o.before})
	}
	for n, w := range ways {
		setup := load.Setup{
			Name: w.name, Dir: filepath.Join(dir, fmt.Sprint(n)), Binary: w.binary, LogLevel: "info", Health: w.scrape,
		}
		if w.otlp {
			setup.Env = []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
				"OTEL_TRACES_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=otlp", "OTEL_LOGS_EXPORTER=otlp",
			}
		}
		if w.server, err = rig.Start(ctx, setup); err != nil {
			return err
		}
	}
	for round := range o.rounds + 1 { // the first one warms up
		for n := range ways {
			w := ways[(n+round)%len(ways)]
			if err := w.measure(ctx, rig, o.duration, round > 0); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	if received.Load() == 0 {
		return errors.New("nothing was sent by OTLP: nothing was measured")
	}
	return print(stdout, ways)
}

// measure sends traffic for a while, and reads the metrics meanwhile.
func (w *way) measure(ctx context.Context, rig *load.Rig, duration time.Duration, keep bool) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- w.read(reading) }()
	flow, err := rig.Send(ctx, w.server, load.Traffic{Size: body, Conns: conns, Users: users, Duration: duration})
	stop()
	if err = errors.Join(err, <-failed); err != nil {
		return err
	}
	w.server.Rest(ctx, 10*time.Second) // the turns that wait to be stored are this one's, not the next one's
	if keep {
		w.rps = append(w.rps, flow.RPS)
		w.cpu = append(w.cpu, float64(flow.CPU.Microseconds())/float64(flow.Requests))
	}
	return nil
}

// read reads the metrics until ctx ends.
func (w *way) read(ctx context.Context) error {
	for w.scrape {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(scrapeEvery):
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.server.Health+"/metrics", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil && ctx.Err() == nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("/metrics answered %d", answer.StatusCode)
		}
	}
	return nil
}

// print writes what each way costs. Ratios are of measurements of one round,
// which follow each other closely.
func print(out io.Writer, ways []*way) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "observed\trequests/s\tthroughput lost\taim\tprocessor time\t")
	plain := ways[0]
	against := plain
	if last := ways[len(ways)-1]; last.binary != "" {
		against = last
	}
	for n, w := range ways {
		base := plain
		if n == 0 {
			base = against
		}
		if w == base || w.binary != "" {
			fmt.Fprintf(t, "%s\t%.0f\t\t\t\t\n", w.name, middle(w.rps))
			continue
		}
		lost := 1 - middle(ratios(w.rps, base.rps))
		verdict := "ok"
		if lost > w.aim {
			verdict = "MISS"
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.1f %%\t<= %.0f %% %s\t%.3f\t\n", w.name, middle(w.rps), 100*lost, 100*w.aim, verdict, middle(ratios(w.cpu, base.cpu)))
	}
	return t.Flush()
}

func ratios(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for n := range a {
		all[n] = a[n] / b[n]
	}
	return all
}

// middle returns the median.
func middle(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
