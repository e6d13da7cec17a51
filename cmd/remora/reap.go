package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/storage"
)

// Schedule of the reaper.
const (
	reapInterval = time.Hour
	firstReap    = time.Minute // after the start, which has other work; so that short runs reap as well
)

// reapGrace is how long what has expired is only hidden before it is deleted.
const reapGrace = 3 * 24 * time.Hour

// Differences between clocks that are reported: more than a restart takes, and
// more than messages that overtake one another.
const (
	reportedAhead  = 24 * time.Hour
	reportedBehind = time.Minute
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
	now := storage.Now()
	at, err := c.advance(now, newest, limit)
	if err != nil {
		return 0, err
	}
	if behind := newest.Std().Sub(now.Std()); behind > reportedBehind {
		log.Warn("the machine's clock is behind the newest memory: one of the two is wrong, and what is said now counts as older", "behind", behind.Round(time.Second).String())
	}
	if ahead := now.Std().Sub(at.Std()); ahead > reportedAhead && now-at > c.reported+storage.Time(reportedAhead.Milliseconds()) {
		c.reported = now - at
		log.Warn("the machine's clock is ahead of the time that was seen to pass: what has expired is hidden, and is not deleted before it has, or 'remora clock --confirm' says that the clock is right",
			"ahead", ahead.Round(time.Second).String())
	}
	return store.Reap(ctx, at-storage.Time(reapGrace.Milliseconds()))
}

// clock is the time by which the bytes of expired memories are deleted. A
// machine's clock may be wrong, by years and for a minute, and what is deleted
// is gone. So this clock believes no jump: it goes forward by the time that the
// process has seen pass, or to a time that an operator confirms, and never
// beyond the machine's: when that is set back, this one is as well, because it
// may have begun while the machine's was ahead. While no process runs it stands
// still. It is kept in a file next to the store.
type clock struct {
	path string
	at   storage.Time
	seen time.Time // when at was set, by a clock that can't be set
	// reported is by how much the machine's clock was ahead when that was logged
	// last.
	reported storage.Time
}

// clockFile is the clock's name in the directory of the store. It holds one
// time, as RFC 3339 writes it.
const clockFile = "clock"

// newClock returns the clock of the store in dir.
func newClock(dir string) *clock {
	return &clock{path: filepath.Join(dir, clockFile), seen: time.Now()}
}

// read returns the time in the file, 0 if there is none.
func (c *clock) read() (storage.Time, error) {
	text, err := os.ReadFile(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the clock: %s holds no time", c.path)
	}
	return storage.TimeOf(at), nil
}

// write replaces the file.
func (c *clock) write(at storage.Time) error {
	f, err := os.CreateTemp(filepath.Dir(c.path), clockFile+".*")
	if err != nil {
		return fmt.Errorf("keep the clock: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // unless it was renamed
	_, err = fmt.Fprintln(f, at.Std().UTC().Format(time.RFC3339))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		return fmt.Errorf("keep the clock: %w", err)
	}
	return nil
}

// advance moves the clock forward by the time since the last call, of which at
// most limit counts, and returns it. now is the machine's, newest the time of
// the newest memory, from which the clock of an older store begins.
func (c *clock) advance(now, newest storage.Time, limit time.Duration) (storage.Time, error) {
	kept, err := c.read()
	if err != nil {
		return 0, err
	}
	passed := min(max(time.Since(c.seen), 0), limit)
	c.seen = time.Now()
	if c.at == 0 && kept == 0 {
		if c.at = now; newest != 0 {
			c.at = min(now, newest)
		}
	} else {
		c.at = max(c.at, kept) // kept is later if an operator has confirmed it
		c.at = min(c.at+storage.Time(passed.Milliseconds()), now)
	}
	return c.at, c.write(c.at)
}

func clockCommand() command {
	return command{
		name:    "clock",
		summary: "show the time by which expired memories are deleted, or confirm the machine's",
		usage: `remora clock [--confirm] [--data DIRECTORY] [--config FILE]

What has expired by the machine's clock is not shown to any model any more. Its bytes are deleted by a clock of Remora's own,
which counts only the time that Remora has seen pass, so that a wrong clock deletes nothing. With --confirm it is set to the
machine's, after a time in which Remora did not run or the machine slept. It works while Remora runs or not.`,
		define: showClock,
	}
}

func showClock(f *pflag.FlagSet) runner {
	flags := storeFlags(f)
	confirm := f.Bool("confirm", false, "the machine's clock is right")
	return func(_ context.Context, s streams, _ []string) error {
		c, err := sealedConfig(flags, s)
		if err != nil {
			return err
		}
		if err := thereIsAStore(c); err != nil {
			return err
		}
		own, now := newClock(c.Storage.Dir), storage.Now()
		at, err := own.read()
		if err != nil && !*confirm {
			return err
		}
		if *confirm {
			machine.PrivateFiles()
			at = now
			if err := keepOwners(c, func() error { return own.write(at) }); err != nil {
				return err
			}
		}
		seen := "not kept yet: Remora has not run for a minute"
		if at != 0 {
			seen = at.Std().UTC().Format(time.RFC3339)
		}
		_, err = fmt.Fprintf(s.out, "machine  %s\nremora   %s\n", now.Std().UTC().Format(time.RFC3339), seen)
		return err
	}
}
