// Package ledger remembers which block was inserted at which turn, so that
// later requests of a conversation carry the same bytes and the provider's
// prompt cache keeps its prefix.
//
// A chain hash over the scope and all messages up to a user turn is the key of
// the turn's entry, so a client that edits its history falls off the chain by
// itself. The proxy asks once for each request: [Entries.Walk] returns what the
// ledger knows about it, and the methods of [Walk] record what became of it.
//
// Guarantees: what Walk returns for an earlier turn is, byte for byte, what was
// sent there. Nothing is stored for a scope before an upstream has accepted one
// of its requests. A forgotten memory leaves every block, in memory and in the
// store. No request waits for the writer; the end of an answer does, within a
// bound.
//
// All methods of Ledger and Entries may be called concurrently; a Walk belongs
// to one goroutine. Memory is bounded by Config.MaxBytes and what waits for the
// writer by 8 MiB; at either bound turns are no longer replayed, which costs
// cache, and a refused request where the upstream binds its answers to them.
// What repairs such a conversation is an entry, too: see [Walk.Repair].
package ledger

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Config bounds what is inserted and remembered.
type Config struct {
	// TTL of an entry from its last use.
	TTL time.Duration
	// ReplayWindow: the same newest turn within it is a retry and gets the same
	// bytes.
	ReplayWindow time.Duration
	// MaxBlocks and MaxTokens (a token is two bytes of block) bound what one
	// conversation carries. At the bound nothing new is added; a block is never
	// evicted from a live conversation.
	MaxBlocks int
	MaxTokens int
	// MaxBytes bounds the entries in memory over all scopes. Scopes that were
	// idle for a minute are evicted first and loaded again when they return.
	// Where all are busy, those above an equal share lose their least recently
	// used turns permanently. Where that share is only a few turns, the least
	// recently used scopes are evicted.
	MaxBytes int64
}

// DefaultConfig keeps entries for as long as conversations are continued,
// retries for a minute, and a quarter of a small context window.
func DefaultConfig() Config {
	return Config{TTL: 30 * 24 * time.Hour, ReplayWindow: time.Minute, MaxBlocks: 32, MaxTokens: 8000, MaxBytes: 32 << 20}
}

// Validate reports all problems, each with its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, msg string) {
		if !ok {
			errs = append(errs, errors.New(msg))
		}
	}
	check(c.TTL >= time.Minute, "ttl: must be at least 1m")
	check(c.ReplayWindow >= 0 && c.ReplayWindow <= c.TTL, "replayWindow: must be between 0 and ttl")
	check(c.MaxBlocks >= 1, "maxBlocks: must be at least 1")
	check(c.MaxTokens >= 1, "maxTokens: must be at least 1")
	check(c.MaxBytes >= 1<<20, "maxBytes: must be at least 1048576")
	return errors.Join(errs...)
}

// Ledger holds the entries of all scopes that were used lately. Create with
// New; Run must be running for anything to be stored.
type Ledger struct {
	cfg   Config
	store *store // nil = memory only
	now   func() time.Time

	forgets atomic.Int64 // number of Forget and Erase calls, for any scope
	repairs repairs

	mu     sync.Mutex
	scopes map[storage.Scope]*list.Element // of *Entries
	recent *list.List                      // front = most recently used
	bytes  int64
}

// New returns a ledger that keeps its entries in local, or in memory alone
// where local is nil. It does no I/O.
func New(cfg Config, local storage.Local, log *slog.Logger, now func() time.Time) *Ledger {
	l := &Ledger{cfg: cfg, now: now, scopes: map[storage.Scope]*list.Element{}, recent: list.New()}
	if local != nil {
		l.store = newStore(local, log, cfg.MaxBytes)
	}
	return l
}

// Scope returns the entries of a scope and begins to load them if they are not
// in memory. Call Await before using them.
func (l *Ledger) Scope(scope storage.Scope) *Entries {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.scopes[scope]; ok {
		s := e.Value.(*Entries)
		if !s.failed() {
			s.lastUsed = l.now()
			l.recent.MoveToFront(e)
			return s
		}
		l.evict(e) // load again
	}
	s := newEntries(l, scope)
	s.lastUsed = l.now()
	l.scopes[scope] = l.recent.PushFront(s)
	l.account(s, scopeSize(scope))
	if l.store == nil {
		close(s.loaded)
	} else {
		l.store.load(s)
	}
	return s
}

// Forget removes memories from all blocks that later requests of the scope
// would replay. Privacy beats the cache.
func (l *Ledger) Forget(scope storage.Scope, ids ...string) {
	s := l.Scope(scope)
	<-s.loaded
	if s.err != nil {
		l.Erase(scope) // which blocks hold them is unknown, and the next load may succeed
		return
	}
	set := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	s.forget(set)
}

// Erase drops a scope from memory and from the store. A request in flight keeps
// its entries to itself.
func (l *Ledger) Erase(scope storage.Scope) {
	l.forgets.Add(1)
	l.mu.Lock()
	var s *Entries
	if e, ok := l.scopes[scope]; ok {
		s = e.Value.(*Entries)
		l.evict(e)
	}
	l.mu.Unlock()
	if s != nil {
		s.mu.Lock()
		s.erased = true
		clear(s.entries)
		s.mu.Unlock()
	}
	if l.store != nil {
		l.store.replace(scope, nil, l.cfg.TTL) // also what is being written at this moment
	}
}

// PauseWrites waits until nothing of a scope is being written and keeps it so
// until resume is called. Call it before the scope is erased from the store,
// and resume after Erase: records that land in between would be deleted again,
// but their bytes would stay on the disk, sealed by a live key, until the store
// compacts.
func (l *Ledger) PauseWrites(ctx context.Context, scope storage.Scope) (resume func(), err error) {
	if l.store == nil {
		return func() {}, nil
	}
	return l.store.pauseWrites(ctx, scope)
}

// Run stores what changes until ctx ends, then writes the rest.
func (l *Ledger) Run(ctx context.Context) {
	if l.store != nil {
		l.store.run(ctx)
	}
}

// Flush writes all pending changes. It reports false if the store refused; they
// are then pending again.
func (l *Ledger) Flush(ctx context.Context) bool {
	return l.store == nil || l.store.flush(ctx)
}

// Dropped returns the number of entries that were not stored or not readable.
func (l *Ledger) Dropped() int64 {
	if l.store == nil {
		return 0
	}
	return l.store.dropped.Load()
}
