package badger

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// freeSpace guards the disk. A measurement holds for a second, or until remeasureBytes have been written since.
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

// last is the last measurement, 0 if there is none yet.
func (f *freeSpace) last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.free
}

// now measures. The directory need not exist yet.
func (f *freeSpace) now() (uint64, error) {
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

// take refuses a write of n bytes if it would leave less than min/share.
func (f *freeSpace) take(n, share uint64) error {
	f.mu.Lock()
	stale := f.at.IsZero() || time.Since(f.at) > time.Second || f.spent+n > remeasureBytes
	f.mu.Unlock()
	if stale {
		if _, err := f.now(); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	left := f.free - min(f.free, f.spent+n)
	if left < f.min/share {
		return unavailable(f.reason(f.free))
	}
	f.spent += n
	return nil
}

func (f *freeSpace) reason(free uint64) string {
	return fmt.Sprintf("no space: %d MiB are free where %s lies, at least %d MiB must stay free", free>>20, f.dir, f.min>>20)
}
