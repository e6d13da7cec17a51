package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/cmd/remora/systemd"
	"github.com/remora-proxy/remora/cmd/remora/wrap"
	"github.com/remora-proxy/remora/storage/process"
)

func serveCommand() command {
	return command{
		name:    "serve",
		summary: "run the proxy",
		usage:   "remora serve [--listen ADDRESS] [--upstream URL] [--data DIRECTORY] [--config FILE] [--forward ADDRESS]",
		define: func(f *pflag.FlagSet) runner {
			flags := configFlags(f)
			locked := f.String("while-locked", "", "end once nobody holds a lock on `file`; wrap starts it so")
			_ = f.MarkHidden("while-locked") // it is there
			return func(ctx context.Context, s streams, _ []string) error {
				if *locked != "" {
					return serveLocked(ctx, s, *flags, *locked)
				}
				return serve(ctx, s, *flags)
			}
		},
	}
}

// serveLocked is serve until nobody holds a lock on a file any more, or ctx ends.
func serveLocked(ctx context.Context, s streams, flags config.Overrides, file string) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var release func()
	watched := make(chan error, 1)
	go func() {
		var err error
		release, err = wrap.AwaitUnused(ctx, file)
		watched <- err
		end()
	}()
	s.out = io.Discard // what is for the person who starts it has no place in its log
	err := serve(ctx, s, flags)
	end()
	if locked := <-watched; !errors.Is(locked, context.Canceled) {
		err = errors.Join(err, locked)
	}
	if release != nil { // a program that waits for it starts another Remora
		release()
	}
	return err
}

// serve runs until ctx ends. A store that does not open, for whatever reason,
// never keeps it from serving: traffic passes without memory, and the store is
// tried again.
func serve(ctx context.Context, s streams, flags config.Overrides) error {
	asked := askedToReload(ctx) // before systemd hears that Remora is ready: it may ask at once
	notify := systemd.NewNotifier()
	sockets, err := systemd.Inherit()
	if err != nil {
		return err
	}
	defer func() { _ = sockets.Close() }()
	flags.Sockets = map[string]string{
		"listen": sockets.Address(systemd.Reverse), "forward.listen": sockets.Address(systemd.Forward),
		"api.listen": sockets.Address(systemd.Control), "health.listen": sockets.Address(systemd.Health),
	}
	where := config.Here(s.getenv)
	load := func() (config.Config, error) { return config.Load(flags, s.getenv, where) }
	c, err := load()
	if err != nil {
		return err
	}
	if err := followClock(c.Store.ClockFile); err != nil {
		return err
	}
	first := !storeBegun(c.Storage.Dir)
	signal.Ignore(syscall.SIGPIPE) // a reader of the log that exits costs log lines, but no request
	level := new(slog.LevelVar)
	level.Set(c.Log.SlogLevel())
	log, answers, logged := newQueuedLogger(c.Log, level, s.err)
	defer logged()
	telemetry, err := export.Open(ctx, export.Options{Getenv: s.getenv, Stdout: s.out, Log: log, Version: readBuild().version})
	if err != nil {
		return err
	}
	log, answers = telemetry.Logger(log), telemetry.Logger(answers)
	if err := limitMemory(c.MemoryLimit); err != nil {
		log.Warn("the Go runtime has no memory limit", "error", err)
	}
	remora, err := newSystemOn(sockets, c, log, telemetry)
	if err != nil {
		return err
	}
	if err := placeTemporary(c.Storage.Dir); err != nil { // after the addresses are ours
		log.Warn("there is no place for temporary files", "error", err)
	}
	remora.announce()
	remora.offerPage(s.out, s.getenv)
	if first {
		offerAgents(s.out, remora, s.getenv)
	}
	for _, w := range c.Warnings(os.Environ(), where) {
		log.Warn("configuration warning", "what", w)
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	watch.Go(func() { remora.watchMemory(watched) })
	watch.Go(func() { returnMemory(watched, quietPeriod) })
	watch.Go(func() { reportLosses(watched, log, remora.losses) })
	watch.Go(func() { (&reloader{asked, load, where, answers, level, remora, c}).run(watched) })
	watch.Go(func() {
		if err := notify.Run(watched); err != nil {
			log.Warn("systemd does not hear how Remora is", "error", err)
		}
	})

	err = remora.run(ctx)
	remora.farewell(err)
	return err
}

// placeTemporary is machine.Temporary, but where a Remora runs with the same
// data directory, it empties nothing: imports to that one may be in progress.
func placeTemporary(dir string) error {
	running, err := process.Dial(dir, process.FrontSocket, readBuild().String())
	if err != nil {
		return machine.Temporary(dir)
	}
	defer func() { _ = running.Close() }()
	probe, err := os.MkdirTemp("", "remora-")
	if err == nil {
		return os.Remove(probe)
	}
	own, err := filepath.Abs(filepath.Join(dir, "tmp"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	return os.Setenv("TMPDIR", own) // there are sockets on Unix only
}
