package persist

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// PassageRunes is the longest passage, in characters.
const PassageRunes = extract.PassageRunes

// Config of a Pipeline.
type Config struct {
	// QueueTurns and QueueBytes limit the turns that are not memories yet.
	QueueTurns int
	QueueBytes int64
	// TurnsPerSecond limits one scope, with a burst of one second; 0 = no
	// limit.
	TurnsPerSecond float64
	// MaxMessageBytes cuts longer messages.
	MaxMessageBytes int
	// MaxWrite is the store's largest write. The rest of a turn is left out.
	MaxWrite int
	// Retention is how long episodes live, from the time they were said.
	Retention time.Duration
	// DrainTimeout limits how long Run continues after its context has ended.
	DrainTimeout time.Duration
	// KeepOriginals stores the originals of redacted personal data, sealed,
	// with each memory. Originals of secrets are never kept.
	KeepOriginals bool
	// MaxQuarantined limits turns set aside; beyond it they are dropped.
	MaxQuarantined int
	Audit          AuditConfig
	Facts          FactConfig
}

// AuditConfig decides when conversations are audited and what is saved. Without
// Enabled no facts are extracted; limits of episodes and records still apply.
type AuditConfig struct {
	Enabled bool
	// A conversation is due once Messages or Tokens are new, or the first new
	// message is Interval old.
	Messages int
	Tokens   int
	Interval time.Duration
	// A due audit waits for Debounce of quiet, unless unread messages would
	// leave the window.
	Debounce time.Duration
	// WindowMessages is the number of recent messages that an audit reads.
	WindowMessages int
	// Threshold is the lowest score saved, PerAudit the most candidates.
	Threshold float64
	PerAudit  int
	// MaxConversations and MaxBytes limit the conversations in memory. Beyond
	// them, the one that was idle longest is audited and released.
	MaxConversations int
	MaxBytes         int64
	// Retention is how long audit records, summaries and requests to forget
	// live.
	Retention time.Duration
}

// FactConfig bounds the facts and episodes of one scope.
type FactConfig struct {
	facts.Config
	// EpisodeBytes bounds the text of episodes; beyond it, the oldest go.
	EpisodeBytes int64
	// CacheBytes limits the facts in memory. Beyond it, those of the scope that
	// was idle longest are released and read again when needed.
	CacheBytes int64
}

// DefaultConfig suits one machine.
func DefaultConfig() Config {
	const day = 24 * time.Hour
	return Config{
		QueueTurns: 20_000, QueueBytes: 32 << 20, TurnsPerSecond: 100, MaxMessageBytes: 128 << 10, MaxWrite: storage.MaxWrite,
		Retention: 90 * day, DrainTimeout: 10 * time.Second, KeepOriginals: true, MaxQuarantined: 1000,
		Audit: AuditConfig{
			Enabled: true, Messages: 6, Tokens: 1500, Interval: 3 * time.Minute, Debounce: 30 * time.Second, WindowMessages: 12,
			Threshold: extract.DefaultThreshold, PerAudit: 3, MaxConversations: 1024, MaxBytes: 16 << 20, Retention: 90 * day,
		},
		Facts: FactConfig{
			Config: facts.Config{
				Max: 10_000, MaxForgotten: 1000, Retention: 180 * day, LongRetention: 2 * 365 * day,
				KeepLonger: extract.DefaultKeepLonger, HalfLife: 90 * day,
			},
			EpisodeBytes: 64 << 20, CacheBytes: 32 << 20,
		},
	}
}

// tuning holds sizes and times that nobody needs to configure. Few large writes
// take less processor time than many small ones, in both processes; a turn is
// searchable within a fifth of a second all the same.
type tuning struct {
	// A spool commit waits for commitTurns turns, at most for commitInterval,
	// and takes up to maxBatchTurns. A write to the store does the same.
	commitInterval, batchInterval          time.Duration
	commitTurns, batchTurns, maxBatchTurns int
	workers                                int // that help the spooler to prepare turns if many wait
	// After softLimit an audit reads no more; after hardLimit it is abandoned.
	softLimit, hardLimit       time.Duration
	maxIncoming                int // turns that wait for the auditor; beyond it, turns go unaudited and are counted
	keepRecords, keepSummaries int // of one scope
	maxPending                 int // requests to forget of one scope; beyond it, the oldest goes
	maxScopes                  int // whose facts are held in memory
}

var defaultTuning = tuning{
	commitInterval: 20 * time.Millisecond, commitTurns: 64, batchInterval: 100 * time.Millisecond, batchTurns: 64, maxBatchTurns: 256, workers: 2,
	softLimit: 120 * time.Millisecond, hardLimit: 300 * time.Millisecond, maxIncoming: 4096,
	keepRecords: 200, keepSummaries: 500, maxPending: 100, maxScopes: 256,
}

// Validate returns all problems.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, field, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: must be %s", field, want))
		}
	}
	check(c.QueueTurns > 0, "queueTurns", "> 0")
	check(c.QueueBytes >= 1<<20, "queueBytes", ">= 1 MiB")
	check(c.TurnsPerSecond >= 0, "turnsPerSecond", ">= 0")
	check(c.MaxMessageBytes >= 1024 && c.MaxMessageBytes <= 4<<20, "maxMessageBytes", "between 1 KiB and 4 MiB")
	check(c.MaxWrite >= 128<<10 && c.MaxWrite <= storage.MaxWrite, "maxWrite", "between 128 KiB and "+strconv.Itoa(storage.MaxWrite))
	check(c.Retention > 0, "retention", "> 0")
	check(c.DrainTimeout >= 0, "drainTimeout", ">= 0")
	check(c.MaxQuarantined >= 0, "maxQuarantined", ">= 0")
	a, f := &c.Audit, &c.Facts
	check(a.Messages > 0, "audit.messages", "> 0")
	check(a.Tokens > 0, "audit.tokens", "> 0")
	check(a.Interval > 0, "audit.interval", "> 0")
	check(a.Debounce >= 0, "audit.debounce", ">= 0")
	check(a.WindowMessages >= a.Messages && a.WindowMessages <= 100, "audit.windowMessages", "between audit.messages and 100")
	check(a.Threshold >= 0 && a.Threshold <= 1, "audit.threshold", "between 0 and 1")
	check(f.KeepLonger >= a.Threshold && f.KeepLonger <= 1, "audit.keepLonger", "between audit.threshold and 1")
	check(a.PerAudit >= 0, "audit.perAudit", ">= 0")
	check(a.MaxConversations > 0, "audit.maxConversations", "> 0")
	check(a.MaxBytes >= 1<<20, "audit.maxBytes", ">= 1 MiB")
	check(a.Retention > 0, "audit.retention", "> 0")
	check(f.Max >= 0, "facts.max", ">= 0")
	check(f.MaxForgotten >= 0 && f.MaxForgotten <= 10_000, "facts.maxForgotten", "between 0 and 10000")
	check(f.Retention > 0, "facts.retention", "> 0")
	check(f.LongRetention >= f.Retention, "facts.longRetention", ">= facts.retention")
	check(f.HalfLife > 0, "facts.halfLife", "> 0")
	check(f.EpisodeBytes >= 1<<20, "facts.episodeBytes", ">= 1 MiB")
	check(f.CacheBytes >= 1<<20, "facts.cacheBytes", ">= 1 MiB")
	return errors.Join(errs...)
}
