package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Bounds of the reaper's schedule.
const (
	defaultReapInterval = time.Hour
	minReapInterval     = time.Second
	firstReap           = time.Minute // after the start, which has other work, so that short runs reap too
)

// reap has the store remove what has expired, every so often, until ctx ends.
func reap(ctx context.Context, store storage.Reaper, every time.Duration, log *slog.Logger) {
	if every == 0 {
		return
	}
	timer := time.NewTimer(min(firstReap, every))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(every)
		}
		removed, err := store.Reap(ctx, storage.TimeOf(time.Now()))
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, storage.ErrUnavailable): // says so itself
			log.Debug("expired memories are not removed yet", "error", err)
		case err != nil:
			log.Error("expired memories cannot be removed", "error", err)
		case removed > 0:
			log.Info("removed what has expired", "records", removed)
		}
	}
}
