// Package load measures what Remora adds to traffic: latency, throughput, CPU
// and memory, compared to a direct connection and a tuned
// httputil.ReverseProxy.
//
// It hides the load generator, the mock upstream, the processes that are
// measured and the report. [Run] is the command load; it starts its own binary
// again with the commands upstream ([RunUpstream]) and reverseproxy
// ([RunReverseProxy]), so that their CPU time is counted separately. It talks
// only to the loopback interface unless another target is named, and is bounded
// in time.
package load

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// loadOptions is the command line of load.
type loadOptions struct {
	remora   string
	logLevel string // of Remora
	preset   string
	strict   bool
	json     bool
	bodies   []int // KiB
	conns    []int
	modes    []string
	apis     []api
	forward  bool
	targets  []string
	others   map[string]string // name to address
	upstream string            // address that the mock upstream listens on
	rounds   int
	duration time.Duration
	rate     float64
	users    int
	memories int
	latency  time.Duration
	events   int
	gap      time.Duration
}

// Bounds of the options, so that a run ends and fits into memory.
const (
	maxLoadBody     = 16 << 10 // KiB
	maxLoadConns    = 4096
	maxLoadRounds   = 1000
	maxLoadDuration = 10 * time.Minute
	maxLoadUsers    = 10_000
	maxLoadMemories = 1_000_000
)

func parseLoadOptions(args []string, stderr io.Writer) (loadOptions, error) {
	o := loadOptions{others: map[string]string{}}
	var bodies, conns, modes, dialects, targets string
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.remora, "remora", "", "`path` of the remora binary (default: remora next to this one)")
	flags.StringVar(&o.logLevel, "log", logWarn, "log level of Remora: warn, or info for a line per exchange and counters at the end")
	flags.StringVar(&o.preset, "preset", "", "must: measure every requirement and say whether it is met")
	flags.BoolVar(&o.strict, "strict", false, "with -preset: fail where a requirement is not met")
	flags.BoolVar(&o.json, "json", false, "print one JSON object a line")
	flags.StringVar(&bodies, "bodies", "1,16,256", "sizes of request bodies in KiB")
	flags.StringVar(&conns, "conns", "1,16,64", "numbers of connections")
	flags.StringVar(&modes, "modes", "json,sse", "kinds of responses")
	flags.StringVar(&dialects, "dialect", "chat", "what is spoken: chat, responses, messages, or several of them")
	flags.BoolVar(&o.forward, "forward", false, "measure the forward listener: over TLS, next to the reverse listener and a ReverseProxy that serves TLS")
	flags.StringVar(&targets, "targets", "", "what to measure, in this order (default: "+strings.Join(reverseTargets(), ",")+"; with -forward: "+strings.Join(forwardTargets(), ",")+")")
	flags.Func("target", "`name=url` of another proxy that passes on to the mock upstream (see -upstream); may be repeated", func(s string) error {
		name, addr, err := parseTargetURL(s)
		if err == nil {
			o.others[name] = addr
		}
		return err
	})
	flags.StringVar(&o.upstream, "upstream", "127.0.0.1:0", "`address` that the mock upstream listens on")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each cell")
	flags.DurationVar(&o.duration, "duration", 2*time.Second, "measured time per target and round")
	flags.Float64Var(&o.rate, "rate", 0, "requests a second of an open loop; 0 = closed loop")
	flags.IntVar(&o.users, "users", 64, "users that requests are spread over; the first has the memories (read: always that one)")
	flags.IntVar(&o.memories, "memories", 10_000, "memories of the first user at the start")
	flags.DurationVar(&o.latency, "latency", 0, "of the mock upstream")
	flags.IntVar(&o.events, "events", 16, "events of a stream")
	flags.DurationVar(&o.gap, "gap", 2*time.Millisecond, "time between two events")
	if err := cli.ParseFlags(flags, args); err != nil {
		return o, err
	}
	var problems []error
	o.bodies = parseSizes("-bodies", bodies, maxLoadBody, &problems)
	o.conns = parseSizes("-conns", conns, maxLoadConns, &problems)
	o.apis = parseDialects(dialects, &problems)
	o.modes, o.targets = strings.Split(modes, ","), reverseTargets()
	if o.forward {
		o.targets = forwardTargets()
	}
	if targets != "" {
		o.targets = strings.Split(targets, ",")
	}
	o.validate(&problems)
	if len(problems) > 0 {
		return o, cli.UsageError(errors.Join(problems...).Error())
	}
	return o, nil
}

func parseSizes(name, list string, most int, problems *[]error) []int {
	var sizes []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > most {
			*problems = append(*problems, fmt.Errorf("%s: %q: must be a number from 1 to %d", name, s, most))
			continue
		}
		sizes = append(sizes, n)
	}
	return sizes
}

func parseDialects(list string, problems *[]error) []api {
	var found []api
	for name := range strings.SplitSeq(list, ",") {
		a, ok := apiNamed(name)
		if !ok {
			*problems = append(*problems, fmt.Errorf("-dialect: %q: must be chat, responses or messages", name))
			continue
		}
		if slices.ContainsFunc(found, func(b api) bool { return b.name == name }) {
			*problems = append(*problems, fmt.Errorf("-dialect: duplicate %q", name))
		}
		found = append(found, a)
	}
	return found
}

// reverseTargets is what is measured without -forward, in this order.
func reverseTargets() []string {
	return []string{targetDirect, targetReverse, targetPass, targetRead, targetOn}
}

func (o *loadOptions) validate(problems *[]error) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			*problems = append(*problems, fmt.Errorf(format, args...))
		}
	}
	for _, m := range o.modes {
		check(m == "json" || m == "sse", "-modes: %q: must be json or sse", m)
	}
	seen := map[string]bool{}
	for _, t := range o.targets {
		known := slices.Contains(reverseTargets(), t) || o.others[t] != ""
		if o.forward {
			known = slices.Contains(forwardTargets(), t)
		}
		check(known, "-targets: unknown target %q", t)
		check(!seen[t], "-targets: duplicate %q", t)
		seen[t] = true
	}
	check(!o.forward || len(o.others) == 0, "-target: not with -forward: no other proxy is reached over TLS")
	for _, name := range slices.Sorted(maps.Keys(o.others)) {
		if !seen[name] {
			o.targets = append(o.targets, name)
		}
	}
	check(o.logLevel == logWarn || o.logLevel == logInfo, "-log: %q: must be warn or info", o.logLevel)
	check(o.preset == "" || o.preset == "must", "-preset: %q: must be must", o.preset)
	check(!o.strict || o.preset != "", "-strict: needs -preset")
	check(o.rounds >= 1 && o.rounds <= maxLoadRounds, "-rounds: must be 1 to %d", maxLoadRounds)
	check(o.duration >= 10*time.Millisecond && o.duration <= maxLoadDuration, "-duration: must be 10ms to %v", maxLoadDuration)
	check(o.rate >= 0 && o.rate <= 1e6, "-rate: must be 0 to 1000000")
	check(o.users >= 1 && o.users <= maxLoadUsers, "-users: must be 1 to %d", maxLoadUsers)
	check(o.memories >= 0 && o.memories <= maxLoadMemories, "-memories: must be 0 to %d", maxLoadMemories)
	check(o.latency >= 0 && o.latency <= time.Minute, "-latency: must be 0 to 1m")
	check(o.events >= 1 && o.events <= maxUpstreamEvents, "-events: must be 1 to %d", maxUpstreamEvents)
	check(o.gap >= 0 && o.gap <= time.Minute, "-gap: must be 0 to 1m")
}

// cells is every combination of dialects, modes, bodies and connections.
func (o loadOptions) cells() []cell {
	var cells []cell
	for _, a := range o.apis {
		for _, mode := range o.modes {
			cells = append(cells, o.cellsOf(a, mode)...)
		}
	}
	return cells
}

func (o loadOptions) cellsOf(a api, mode string) []cell {
	var cells []cell
	for _, kib := range o.bodies {
		for _, conns := range o.conns {
			c := cell{
				api: a, forward: o.forward,
				size: kib << 10, conns: conns, rate: o.rate, users: o.users, rounds: o.rounds, duration: o.duration,
				script: replyScript{latency: o.latency},
			}
			if mode == "sse" {
				c.script.events, c.script.gap = o.events, o.gap
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// runLoad measures. The processes that it starts and their data are gone when
// it returns.
//
//	generator (this process) --> direct -----------------------> mock upstream (a process)
//	                         --> reverseproxy (a process) ------>
//	                         --> pass, read, on (remora serve) ->
//	                         --> any -target ------------------->
//
// With -forward it is what [forwardTargets] shows.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseLoadOptions(args, stderr)
	if err != nil {
		return err
	}
	shortenSlices()
	b, err := openBed(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	p := report{out: stdout, json: o.json}
	if o.preset == "must" {
		return b.must(ctx, o, p)
	}
	var targets []target
	if o.forward {
		targets, err = b.secureTargets(ctx, o.targets)
	} else {
		targets, err = b.targets(ctx, o.targets, o.others)
	}
	if err != nil {
		return err
	}
	for _, c := range o.cells() {
		results, err := b.measureCell(ctx, c, targets)
		if err != nil {
			return err
		}
		if err := p.cells(results); err != nil {
			return err
		}
	}
	return stopTargets(targets, p)
}

// stopTargets ends the targets' processes and reports what they counted.
func stopTargets(targets []target, p report) error {
	for _, t := range targets {
		counters, err := t.stop()
		if err != nil {
			return err
		}
		if err := p.counters(t.name, counters); err != nil {
			return err
		}
	}
	return nil
}
