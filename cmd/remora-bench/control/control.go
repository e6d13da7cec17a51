// Package control measures the control plane: what its verbs take on a store
// of a million memories, whether an export needs bounded memory, and what the
// control plane costs the traffic.
//
// It hides how the store is filled, the clients of the REST face and the
// report. [Run] is the command control. It fills a store through
// storage/badger, starts `remora serve` over it, built from the checkout that
// it is called in, and asks that alone, on loopback. What it starts and writes
// is gone when it returns, except for the directory of -data.
package control

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/cmd/remora-bench/load"
)

// options is the command line of control.
type options struct {
	remora   string // path of Remora's binary; "" = it is built
	data     string // directory that is kept; "" = a temporary one
	parts    []string
	strict   bool
	users    int
	memories int // of each
	receipts int // of each
	requests int
	rounds   int
	duration time.Duration
}

// Parts of a run.
const (
	partReads  = "reads"
	partExport = "export"
	partCost   = "cost"
)

func allParts() []string { return []string{partReads, partExport, partCost} }

// Bounds of the options, so that a run ends and fits on a disk.
const (
	maxUsers    = 10_000 // as many names as the traffic has
	maxMemories = 1_000_000
	maxReceipts = 1000 // as many as are kept
	maxRequests = 1_000_000
	maxRounds   = 1000
	maxDuration = 10 * time.Minute
)

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var parts string
	flags := flag.NewFlagSet("control", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.remora, "remora", "", "`path` of the remora binary (default: it is built from the checkout here)")
	flags.StringVar(&o.data, "data", "", "`directory` that is filled if it is missing, and kept (default: a temporary one)")
	flags.StringVar(&parts, "parts", strings.Join(allParts(), ","), "what to measure")
	flags.BoolVar(&o.strict, "strict", false, "fail where an aim is missed")
	flags.IntVar(&o.users, "users", 100, "users")
	flags.IntVar(&o.memories, "memories", 10_000, "memories of each user")
	flags.IntVar(&o.receipts, "receipts", maxReceipts, "receipts of each user, of eight memories each")
	flags.IntVar(&o.requests, "requests", 3000, "calls of each verb; of slow ones as many as fit into some seconds")
	flags.IntVar(&o.rounds, "rounds", 8, "alternations without and with load on the control plane")
	flags.DurationVar(&o.duration, "duration", 3*time.Second, "measured time of each")
	if err := cli.ParseFlags(flags, args); err != nil {
		return o, err
	}
	o.parts = strings.Split(parts, ",")
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for _, part := range o.parts {
		check(slices.Contains(allParts(), part), "-parts: %q: must be %s", part, strings.Join(allParts(), ", "))
	}
	check(o.users >= 1 && o.users <= maxUsers, "-users: must be 1 to %d", maxUsers)
	check(o.memories >= perBlock && o.memories <= maxMemories, "-memories: must be %d to %d", perBlock, maxMemories)
	check(o.receipts >= 0 && o.receipts <= maxReceipts, "-receipts: must be 0 to %d", maxReceipts)
	check(o.requests >= 10 && o.requests <= maxRequests, "-requests: must be 10 to %d", maxRequests)
	check(o.rounds >= 1 && o.rounds <= maxRounds, "-rounds: must be 1 to %d", maxRounds)
	check(o.duration >= 100*time.Millisecond && o.duration <= maxDuration, "-duration: must be 100ms to %v", maxDuration)
	if len(problems) > 0 {
		return o, cli.UsageError(errors.Join(problems...).Error())
	}
	return o, nil
}

// run is one run.
type run struct {
	options
	corpus corpus
	rig    *load.Rig
	dir    string // of Remora's data
	out    *report
}

// Run measures. It is bounded in time by the number of memories and by its
// options.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "remora-bench-control-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	if o.remora == "" {
		if o.remora, err = cli.BuildRemora(ctx, temporary); err != nil {
			return err
		}
	}
	r := run{options: o, corpus: corpus{o.users, o.memories}, dir: o.data, out: &report{out: stdout}}
	if r.dir == "" {
		r.dir = filepath.Join(temporary, "remora")
	}
	if err := r.fill(ctx, stderr); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	if r.rig, err = load.OpenRig(ctx, o.remora, stderr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.rig.Close()) }()
	for _, part := range []struct {
		name    string
		measure func(context.Context, *load.Server, *client) error
	}{{partReads, r.reads}, {partExport, r.export}, {partCost, r.cost}} {
		if !slices.Contains(o.parts, part.name) {
			continue
		}
		fmt.Fprintf(stderr, "measuring %s ...\n", part.name)
		if err := r.serving(ctx, part.name, part.measure); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if err := r.out.flush(); err != nil {
			return err
		}
	}
	if o.strict && r.out.missed > 0 {
		return fmt.Errorf("%d aims missed", r.out.missed)
	}
	return nil
}

// settleLimit bounds how long a fresh Remora may work before it is measured: it
// looks through the store for what has expired.
const settleLimit = time.Minute

// serving calls measure with a Remora of its own that has come to rest.
func (r *run) serving(ctx context.Context, name string, measure func(context.Context, *load.Server, *client) error) (err error) {
	s, err := r.rig.Serve(ctx, name, r.dir)
	if err != nil {
		return err
	}
	defer func() {
		if !s.Ended() {
			err = errors.Join(err, s.Stop())
		}
	}()
	c, err := newClient(s.Control, load.DataDir(r.dir))
	if err != nil {
		return err
	}
	defer c.close()
	s.Rest(ctx, settleLimit)
	return measure(ctx, s, c)
}
