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
	// run blocks until ctx ends and what it had taken on is finished, or until
	// it fails.
	run func(ctx context.Context) error
	// patience bounds how long run may go on after ctx has ended. A stage that
	// takes longer is left behind, with an error, so that those after it still
	// get their turn.
	patience time.Duration
}

// runStages starts every stage, in the order in which data flows through them,
// last first: so the part that takes work never runs before the part it hands
// it to. Once ctx ends, or a stage returns before it was told to, it stops them
// first to last, each only after the one before has returned: so nothing is
// lost between two of them.
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
		log.Error("stopping, because a part ended by itself", "part", name)
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

// together runs parts of one stage side by side. When one of them ends early
// the others are told to stop.
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
