// Command remora-bench measures Remora: what it costs on the way of the
// traffic, how well and how fast it recalls, and how fast its control plane is.
//
// Every command generates its own input from a fixed seed or reads it from a
// file that it is given, talks to the loopback interface only unless a target
// elsewhere is named, and is bounded in time. The processes that it starts end
// with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/cmd/remora-bench/control"
	"github.com/remora-proxy/remora/cmd/remora-bench/lives"
	"github.com/remora-proxy/remora/cmd/remora-bench/load"
	"github.com/remora-proxy/remora/cmd/remora-bench/quality"
	"github.com/remora-proxy/remora/cmd/remora-bench/telemetry"
)

// command is one thing that remora-bench does.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

// commands is the table that run and usage share. The last two are what load
// starts as processes of their own, so that their CPU time is counted apart;
// they serve as well by hand.
func commands() []command {
	return []command{
		{"load", "what Remora adds to the traffic: latency, throughput, CPU, memory", load.Run},
		{"recall", "how well memories are found, and how fast, on conversations with questions", quality.RunRecall},
		{"gate", "how well it is decided to recall nothing", quality.RunGate},
		{"lives", "what people get of their memory: conversations of months, played at their dates, and questions afterwards", lives.Run},
		{"scale", "what a growing memory costs: one user of 1k to 1M memories, 1 to 10,000 users", quality.RunScale},
		{"control", "the control plane on a million memories: latency, an export's memory, what it costs the traffic", control.Run},
		{"telemetry", "what traces, metrics and logs cost the traffic", telemetry.Run},
		{"redact", "how many secrets and personal data are found, what is taken for such, and what it costs", quality.RunRedact},
		{"upstream", "the mock upstream that load measures against", load.RunUpstream},
		{"reverseproxy", "the tuned bare httputil.ReverseProxy that ratios refer to", load.RunReverseProxy},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "remora-bench:", err)
	if _, ok := errors.AsType[cli.UsageError](err); ok {
		os.Exit(2)
	}
	os.Exit(1)
}

// run is main without the process around it. The commands need neither
// environment nor input.
func run(ctx context.Context, args []string, _ func(string) string, _ io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		printUsage(stderr)
		return cli.UsageError("no command given")
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		printUsage(stdout)
		return nil
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], stdout, stderr)
		}
	}
	printUsage(stderr)
	return cli.UsageError(fmt.Sprintf("unknown command %q", args[0]))
}

func printUsage(w io.Writer) {
	fmt.Fprint(w, "Usage: remora-bench COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-14s%s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nremora-bench COMMAND -h lists the flags of a command.\n")
}
