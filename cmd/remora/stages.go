package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// stage is one part of the running program.
type stage struct {
	name string
	// run blocks until ctx has ended and its work is finished, or until it
	// fails.
	run func(ctx context.Context) error
	// patience limits how long run may continue after ctx has ended. A slower
	// stage is abandoned with an error, so that the stages after it still get
	// their turn.
	patience time.Duration
}

// runStages starts the stages in the order in which data flows through them,
// last first, so that a stage never runs before the one to which it hands its
// work. When ctx ends, or a stage returns early, it stops them first to last,
// each only after the one before has returned, so that nothing is lost between
// two of them.
func runStages(ctx context.Context, log *slog.Logger, stages ...stage) error {
	type running struct {
		stage
		stop context.CancelFunc
		done chan struct{}
		err  error
	}
	early := make(chan string, len(stages))
	all := make([]*running, len(stages))
	for i := len(stages) - 1; i >= 0; i-- {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		r := &running{stage: stages[i], stop: stop, done: make(chan struct{})}
		all[i] = r
		go func() {
			defer close(r.done)
			r.err = r.run(own)
			if own.Err() == nil {
				early <- r.name
			}
		}()
	}
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case name := <-early:
		log.Error("component exited, shutting down", "component", name)
	}
	var errs []error
	for _, r := range all {
		r.stop()
		timer := time.NewTimer(r.patience)
		select {
		case <-r.done:
			if r.err != nil && !errors.Is(r.err, context.Canceled) {
				errs = append(errs, fmt.Errorf("%s: %w", r.name, r.err))
			}
		case <-timer.C:
			errs = append(errs, fmt.Errorf("%s: still not done %s after it was told to stop", r.name, r.patience))
		}
		timer.Stop()
	}
	return errors.Join(errs...)
}

// together runs parts of one stage at the same time. When one of them ends
// early, the others are stopped.
func together(parts ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		errs := make([]error, len(parts))
		var all sync.WaitGroup
		for i, run := range parts {
			all.Go(func() {
				defer stop()
				errs[i] = run(ctx)
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
}
