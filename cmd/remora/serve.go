package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
)

func serveCommand() command {
	return command{
		name:    "serve",
		summary: "run the proxy",
		usage:   "remora serve [--listen ADDRESS] [--upstream URL] [--data DIRECTORY] [--config FILE] [--forward ADDRESS]",
		define: func(f *pflag.FlagSet) runner {
			flags := configFlags(f)
			return func(ctx context.Context, s streams, _ []string) error { return serve(ctx, s, *flags) }
		},
	}
}

// serve runs until ctx ends. A store that does not open, for whatever reason,
// never keeps it from serving: traffic passes without memory, and the store is
// tried again.
func serve(ctx context.Context, s streams, flags config.Overrides) error {
	c, err := config.Load(flags, s.getenv, config.Here(s.getenv))
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a reader of the log that exits costs log lines, but no request
	log, logged := newQueuedLogger(c.Log, s.err)
	defer logged()
	telemetry, err := export.Open(ctx, export.Options{Getenv: s.getenv, Stdout: s.out, Log: log, Version: readBuild().version})
	if err != nil {
		return err
	}
	log = telemetry.Logger(log)
	if err := limitMemory(c.MemoryLimit); err != nil {
		log.Warn("the Go runtime has no memory limit", "error", err)
	}
	remora, err := newSystem(c, log, telemetry)
	if err != nil {
		return err
	}
	remora.announce()
	remora.offerPage(s.out, s.getenv)
	for _, w := range c.Warnings(os.Environ(), config.Here(s.getenv)) {
		log.Warn("configuration warning", "what", w)
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	watch.Go(func() { remora.watchMemory(watched) })
	watch.Go(func() { returnMemory(watched, quietPeriod) })
	watch.Go(func() { reportLosses(watched, log, remora.losses) })

	err = remora.run(ctx)
	remora.farewell(err)
	return err
}
