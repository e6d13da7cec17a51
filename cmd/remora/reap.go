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

// reapGrace is how long what has expired is only hidden before it is deleted.
const reapGrace = 3 * 24 * time.Hour

// Differences between clocks that are told: more than a restart takes, and more
// than messages that overtake one another.
const (
	toldAhead  = 24 * time.Hour
	toldBehind = time.Minute
)

// reap deletes what has expired for reapGrace by c, at an interval until ctx
// ends.
func reap(ctx context.Context, store storage.Reaper, c *clock, every time.Duration, log *slog.Logger) {
	timer := time.NewTimer(min(firstReap, every))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(every)
		}
		removed, err := reapOnce(ctx, store, c, 2*every, log)
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

func reapOnce(ctx context.Context, store storage.Reaper, c *clock, limit time.Duration, log *slog.Logger) (removed int, err error) {
	newest, err := store.Newest(ctx)
	if err != nil {
		return 0, err
	}
	now := storage.TimeOf(time.Now())
	at, err := c.advance(now, newest, limit)
	if err != nil {
		return 0, err
	}
	if behind := newest.Std().Sub(now.Std()); behind > toldBehind {
		log.Warn("the machine's clock is behind the newest memory: one of the two is wrong, and what is said now counts as older", "behind", behind.Round(time.Second).String())
	}
	if ahead := now.Std().Sub(at.Std()); ahead > toldAhead && now-at > c.told+storage.Time(toldAhead.Milliseconds()) {
		c.told = now - at
		log.Warn("the machine's clock is ahead of the time that was seen to pass: what has expired is hidden, and is not deleted before it has, or 'remora clock --confirm' says that the clock is right",
			"ahead", ahead.Round(time.Second).String())
	}
	return store.Reap(ctx, at-storage.Time(reapGrace.Milliseconds()))
}
