package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Schedule of the reaper.
const (
	reapInterval = time.Hour
	firstReap    = time.Minute // after the start, which has other work; so that short runs reap as well
)

// reap removes expired records from the store at an interval until ctx ends.
func reap(ctx context.Context, store storage.Reaper, every time.Duration, log *slog.Logger) {
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
		case errors.Is(err, storage.ErrUnavailable): // the store has logged why
			log.Debug("expired memories can't be removed yet", "error", err)
		case err != nil:
			log.Error("expired memories can't be removed", "error", err)
		case removed > 0:
			log.Info("expired records removed", "records", removed)
		}
	}
}
