package recall

import (
	"errors"
	"fmt"
	"time"
)

// Config configures an Engine.
type Config struct {
	SearchConfig
	// Deadline bounds a request whose scope is loaded, FirstDeadline any other.
	Deadline      time.Duration
	FirstDeadline time.Duration
	// MaxBytes bounds all indexes together. Beyond it the least recently used
	// scopes are evicted; their next request loads them again. MaxScopeBytes
	// bounds one index. Beyond it the oldest memories are left out and counted.
	MaxBytes      int64
	MaxScopeBytes int64
	// MaxLoads bounds the loads that run at the same time; others wait.
	// LoadTimeout bounds one load.
	MaxLoads    int
	LoadTimeout time.Duration
	// SnapshotAfter is how long an index must not have changed before its
	// snapshot is written; 0 means no snapshots.
	SnapshotAfter time.Duration
	Vectors       VectorConfig
}

// DefaultConfig returns the measured defaults.
func DefaultConfig() Config {
	return Config{
		SearchConfig:  defaultSearchConfig(),
		Deadline:      30 * time.Millisecond,
		FirstDeadline: 150 * time.Millisecond,
		MaxBytes:      256 << 20,
		MaxScopeBytes: 128 << 20,
		MaxLoads:      4,
		LoadTimeout:   2 * time.Minute,
		SnapshotAfter: 30 * time.Second,
		Vectors:       VectorConfig{Weight: 0.15, Gate: 7},
	}
}

// Validate returns all problems, joined, each with the key of its setting.
func (c Config) Validate() error {
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
	}
	if c.Deadline <= 0 {
		bad("deadline", "must be > 0")
	}
	if c.FirstDeadline <= 0 {
		bad("firstDeadline", "must be > 0")
	}
	if c.MaxBytes < 1<<20 {
		bad("maxBytes", "must be at least 1 MiB")
	}
	if c.MaxScopeBytes < 1<<16 || c.MaxScopeBytes > c.MaxBytes {
		bad("maxScopeBytes", "must be 64 KiB..maxBytes")
	}
	if c.MaxLoads < 1 {
		bad("maxLoads", "must be > 0")
	}
	if c.LoadTimeout <= 0 {
		bad("loadTimeout", "must be > 0")
	}
	if c.SnapshotAfter < 0 {
		bad("snapshotAfter", "must be >= 0")
	}
	if v := c.Vectors; !(v.Weight >= 0 && v.Weight <= 10) {
		bad("embeddings.weight", "must be 0..10")
	}
	if v := c.Vectors; !(v.Gate >= 0 && v.Gate <= 1000) {
		bad("embeddings.gate", "must be 0..1000")
	}
	return errors.Join(append(errs, c.SearchConfig.validate())...)
}
