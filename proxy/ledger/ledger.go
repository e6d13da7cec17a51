// Package ledger remembers which block was inserted at which turn, so that
// later requests of a conversation carry the same bytes and the provider's
// prompt cache keeps its prefix.
//
// A chain hash over the scope and all messages up to a user turn is the key of
// the turn's entry, so a client that edits its history falls off the chain by
// itself. The proxy asks once for each request: [Ledger.Find] finds its
// conversation, [Search.Walk] returns what is known about the request, and the
// methods of [Walk] record what became of it.
//
// Guarantees: what Walk returns for an earlier turn is, byte for byte, what was
// sent there. Nothing is stored for a conversation before an upstream has
// accepted one of its requests. A forgotten memory leaves every block, in memory
// and in the store. No request waits for the writer; the end of an answer does
// for the journal, within a bound.
//
// All methods of Ledger may be called concurrently; a Search and its Walk belong
// to one goroutine. Conversations that were not used lately are in the store
// only. Memory is bounded by Config.MaxBytes, the store by Config.MaxStored, and
// what waits for the writer by 8 MiB; beyond the latter two turns are no longer
// replayed, which costs cache, and a refused request where the upstream binds
// its answers to them. What repairs such a conversation is an entry, too: see
// [Walk.Repair].
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
	// MaxBytes bounds the entries in memory over all scopes. The conversations
	// that were idle for longest leave it first, and are loaded when they go
	// on. Conversations of one user that begin with the same words share at most
	// a sixteenth of it; beyond that their least recently used turns are lost.
	MaxBytes int64
	// MaxStored bounds what is stored, in bytes over all scopes. Beyond it the
	// turns that were not used for longest are deleted.
	MaxStored int64
}

// maxGroup bounds a group, in bytes.
func (c *Config) maxGroup() int64 { return c.MaxBytes / 16 }

// DefaultConfig keeps entries for as long as conversations are continued,
// retries for a minute, and a quarter of a small context window.
func DefaultConfig() Config {
	return Config{TTL: 30 * 24 * time.Hour, ReplayWindow: time.Minute, MaxBlocks: 32, MaxTokens: 8000, MaxBytes: 32 << 20, MaxStored: 1 << 30}
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
	check(c.MaxStored >= 1<<20, "maxStored: must be at least 1048576")
	return errors.Join(errs...)
}

// Ledger holds the entries of all conversations that were used lately. Create
// with New; Run must be running for anything to be stored.
type Ledger struct {
	cfg   Config
	store *store // nil = memory only
	now   func() time.Time

	forgets atomic.Int64 // number of Forget and Erase calls, for any scope
	repairs repairs

	mu     sync.Mutex
	seeds  map[seedKey]Hash // of chains, at most maxSeeds
	loads  map[storage.Scope]scopeLoads
	groups map[groupKey]*list.Element // of *Entries
	recent *list.List                 // front = most recently used
	bytes  int64
}

// scopeLoads are the loads of one scope that are under way.
type scopeLoads struct {
	count int
	began time.Time // the first of them
}

// New returns a ledger that keeps its entries in local, or in memory alone
// where local is nil. It does no I/O.
func New(cfg Config, local storage.Local, log *slog.Logger, now func() time.Time) *Ledger {
	l := &Ledger{cfg: cfg, now: now, seeds: map[seedKey]Hash{}, loads: map[storage.Scope]scopeLoads{}, groups: map[groupKey]*list.Element{}, recent: list.New()}
	if local != nil {
		l.store = newStore(local, log, cfg)
	}
	return l
}

// OpenJournal makes entries durable within moments: they are written to files
// in dir until the store has them. What such files hold is taken up. Call it
// before Find. The secret, from which their keys derive, must be the same each
// time. Without a journal a kill loses what was inserted in the last quarter of
// a second. A second call does nothing.
func (l *Ledger) OpenJournal(dir string, secret []byte) error {
	if l.store == nil {
		return nil
	}
	return l.store.open(dir, secret)
}

// maxSeeds bounds the seeds in memory; beyond it they are computed again.
const maxSeeds = 1024

// seed returns the start of a scope's chains.
func (l *Ledger) seed(of Seed) Hash {
	key := seedKey{of.Scope, of.Class}
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.seeds[key]
	if !ok {
		if len(l.seeds) >= maxSeeds {
			clear(l.seeds)
		}
		h = chainSeed(of)
		l.seeds[key] = h
	}
	return h
}

type seedKey struct {
	scope storage.Scope
	class string
}

// group returns the entries of a group, as far as they are in memory.
func (l *Ledger) group(key groupKey) *Entries {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.groups[key]
	if ok {
		l.recent.MoveToFront(e)
	} else {
		s := newEntries(l, key)
		s.begun = l.store == nil || l.store.isNew(key)
		e = l.recent.PushFront(s)
		l.groups[key] = e
		l.account(s, key.size())
	}
	return e.Value.(*Entries)
}

// load begins to load what is stored of a group, unless that was done or there
// is nothing. It tries again where it has failed. Call await before using it.
func (l *Ledger) load(s *Entries) {
	if l.store == nil {
		return
	} else if may, known := l.store.mayHave(s.key); known && !may {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.load != nil && !s.load.failed() {
		return
	}
	s.load = newLoad()
	loads := l.loads[s.key.scope]
	if loads.count++; loads.count == 1 {
		loads.began = time.Now()
	}
	l.loads[s.key.scope] = loads
	l.store.load(s, s.load)
}

// loaded records that the load of a group has ended.
func (l *Ledger) loaded(scope storage.Scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	loads := l.loads[scope]
	if loads.count--; loads.count == 0 {
		delete(l.loads, scope)
		return
	}
	l.loads[scope] = loads
}

// inMemory returns the groups of a scope that are in memory.
func (l *Ledger) inMemory(scope storage.Scope) (all []*list.Element) {
	for key, e := range l.groups {
		if key.scope == scope {
			all = append(all, e)
		}
	}
	return all
}

// Forget removes memories from all blocks that later requests of the scope
// would replay. Privacy beats the cache. It waits for the store for a few
// seconds; if that is away, it is done as soon as it is back.
func (l *Ledger) Forget(scope storage.Scope, ids ...string) {
	l.forgets.Add(1)
	set := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	if l.store != nil {
		l.store.forget(scope, set) // from here on nothing that is loaded has them
	}
	l.mu.Lock()
	groups := l.inMemory(scope)
	l.mu.Unlock()
	for _, e := range groups {
		e.Value.(*Entries).forget(set)
	}
	if l.store != nil {
		l.store.forget(scope, set) // what was put in between
		l.store.settleNow()
	}
}

// Erase drops a scope from memory and from the store, as Forget does. A request
// in flight keeps its entries to itself.
func (l *Ledger) Erase(scope storage.Scope) {
	l.forgets.Add(1)
	l.mu.Lock()
	groups := l.inMemory(scope)
	for _, e := range groups {
		l.evict(e)
	}
	l.mu.Unlock()
	for _, e := range groups {
		s := e.Value.(*Entries)
		s.mu.Lock()
		s.erased = true
		clear(s.entries)
		s.mu.Unlock()
	}
	if l.store != nil {
		l.store.erase(scope)
		l.store.settleNow()
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

// Size returns the bytes of the entries in memory, and of those that wait to be
// stored.
func (l *Ledger) Size() (memory, unsaved int64) {
	l.mu.Lock()
	memory = l.bytes
	l.mu.Unlock()
	if l.store != nil {
		unsaved = l.store.unsavedBytes()
	}
	return memory, unsaved
}

// Dropped returns the number of entries that were not stored or not readable.
func (l *Ledger) Dropped() int64 {
	if l.store == nil {
		return 0
	}
	return l.store.dropped.Load()
}

// Trimmed returns the number of segments that were deleted because more than
// Config.MaxStored was stored.
func (l *Ledger) Trimmed() int64 {
	if l.store == nil {
		return 0
	}
	return l.store.disk.trim.removed.Load()
}
