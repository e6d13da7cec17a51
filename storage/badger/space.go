package badger

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// freeSpace keeps writes from filling the disk. A measurement is used for a
// second, or until remeasureBytes were written.
type freeSpace struct {
	dir     string
	min     uint64
	measure func(dir string) (uint64, error)

	mu    sync.Mutex
	at    time.Time
	free  uint64
	spent uint64
}

const remeasureBytes = 16 << 20

func newFreeSpace(cfg Config) *freeSpace {
	measure := cfg.FreeBytes
	if measure == nil {
		measure = freeBytes
	}
	return &freeSpace{dir: cfg.Dir, min: cfg.MinFreeBytes, measure: measure}
}

// last returns the last measurement, 0 if there is none yet.
func (f *freeSpace) last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.free
}

// measureNow measures. The directory need not exist yet.
func (f *freeSpace) measureNow() (uint64, error) {
	dir := f.dir
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := f.measure(dir)
	if err != nil {
		return 0, fmt.Errorf("measure free space: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free, f.spent, f.at = free, 0, time.Now()
	return free, nil
}

// The parts of the minimum that must stay free: all of it for writes, a quarter
// for deletes and erasures, which make room in the end.
const (
	forWrites  = 1
	forDeletes = 4
)

// reserve refuses a write of n bytes that would leave less than the minimum,
// divided by divisor.
func (f *freeSpace) reserve(n, divisor uint64) error {
	f.mu.Lock()
	stale := f.at.IsZero() || time.Since(f.at) > time.Second || f.spent+n > remeasureBytes
	f.mu.Unlock()
	if stale {
		if _, err := f.measureNow(); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	left := f.free - min(f.free, f.spent+n)
	if left < f.min/divisor {
		return unavailable(f.reason(f.free))
	}
	f.spent += n
	return nil
}

func (f *freeSpace) reason(free uint64) string {
	return fmt.Sprintf("no space: %d MiB are free on the file system of %s, at least %d MiB must stay free", free>>20, f.dir, f.min>>20)
}

// watch measures until ctx ends, and logs when the free space crosses the
// minimum.
func (f *freeSpace) watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	low := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		free, err := f.measureNow()
		switch {
		case err != nil:
			log.Warn("cannot measure free space", "err", err)
		case free < f.min && !low:
			low = true
			log.Error("store refuses writes", "reason", f.reason(free))
		case free >= f.min && low:
			low = false
			log.Info("store accepts writes again", "free_bytes", free)
		}
	}
}
