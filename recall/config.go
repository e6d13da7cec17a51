package recall

import (
	"errors"
	"fmt"
	"time"
)

// Config configures an Engine.
type Config struct {
	// TopK is the largest number of memories in a result, 1 to MaxTopK.
	TopK int
	// BudgetTokens bounds the size of a result. Two bytes of a line count as a
	// token, which no common tokenizer exceeds on prose. If the memories would
	// take more, long ones are shortened and the last may be left out.
	BudgetTokens int
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
	// Scopes are searched for a request that names none.
	Scopes []SearchScope
	// Gate is the relevance, 0 to 1, that the best candidate must reach for
	// anything to be returned.
	Gate float64
	// MaxTerms bounds the terms of a query; the heaviest are kept.
	MaxTerms int
	// A message with fewer terms than BorrowTerms borrows those of the user's
	// previous message, at weight BorrowWeight.
	BorrowTerms  int
	BorrowWeight float64
	Weights      Weights
	Vectors      VectorConfig
}

// DefaultConfig returns the measured defaults.
func DefaultConfig() Config {
	return Config{
		TopK:          8,
		BudgetTokens:  1000,
		Deadline:      30 * time.Millisecond,
		FirstDeadline: 150 * time.Millisecond,
		MaxBytes:      256 << 20,
		MaxScopeBytes: 128 << 20,
		MaxLoads:      4,
		LoadTimeout:   2 * time.Minute,
		SnapshotAfter: 30 * time.Second,
		Scopes:        []SearchScope{CurrentChat, Resources, AllUserMemory},
		Gate:          0.2,
		MaxTerms:      32,
		BorrowTerms:   3,
		BorrowWeight:  0.3,
		Weights:       DefaultWeights(),
		Vectors:       VectorConfig{Weight: 0.15, Gate: 7},
	}
}

// Validate returns all problems, joined, each with the key of its setting.
func (c Config) Validate() error {
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
	}
	if c.TopK < 1 || c.TopK > MaxTopK {
		bad("topK", "must be 1..%d", MaxTopK)
	}
	if c.BudgetTokens < 1 {
		bad("budgetTokens", "must be > 0")
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
	if len(c.Scopes) == 0 {
		bad("scopes", "must name at least one")
	}
	for i, s := range c.Scopes {
		if s != CurrentChat && s != Resources && s != AllUserMemory {
			bad(fmt.Sprintf("scopes[%d]", i), "must be current_chat, resources or all_user_memory")
		}
	}
	if !(c.Gate >= 0 && c.Gate <= 1) {
		bad("gate", "must be 0..1")
	}
	if c.MaxTerms < 1 || c.MaxTerms > 256 {
		bad("maxTerms", "must be 1..256")
	}
	if c.BorrowTerms < 0 {
		bad("borrowTerms", "must be >= 0")
	}
	if !(c.BorrowWeight >= 0 && c.BorrowWeight <= 1) {
		bad("borrowWeight", "must be 0..1")
	}
	if v := c.Vectors; !(v.Weight >= 0 && v.Weight <= 10) {
		bad("embeddings.weight", "must be 0..10")
	}
	if v := c.Vectors; !(v.Gate >= 0 && v.Gate <= 1000) {
		bad("embeddings.gate", "must be 0..1000")
	}
	return errors.Join(append(errs, c.Weights.validate()...)...)
}
