// Package badger keeps memories and local records in an embedded Badger
// database on the local disk. A [Store] implements [storage.Store],
// [storage.Local] and all optional interfaces; nothing outside this package
// touches Badger. cmd/remora opens it, mostly in a process of its own
// (storage/process).
//
// Guarantees in addition to those of package storage:
//
//   - Sealing. Every value is sealed with AES-256-GCM under a random data key of its scope, bound to its disk key and
//     version: one that was moved, swapped or altered is [storage.ErrDamaged]. An older version in the place of a newer
//     one is noticed when read by id; in a scan only the scope's digest shows it ([storage.Verify]), as it shows what is
//     missing. A memory, its index entry and the digest rolled back together are not noticed. Data keys are kept in a
//     keyring next to the data, wrapped by the key-encryption key, which is written to key files only.
//   - Names. Disk keys are keyed hashes. Kinds of records, event times in milliseconds, counts, sizes and expiry times
//     are in the clear; layout.go has the table.
//   - Keys. A key-encryption key is generated only for a new store, a data key only for a scope without data. Where
//     there is data and the key or the keyring is missing or wrong, the store refuses to open and changes nothing; where
//     a data key is missing, the scope can only be erased, and all else is [storage.ErrDamaged].
//   - Deletion. Delete makes records unreadable through this package at once. Their sealed bytes stay in the files until
//     a Reap compacts them away, at most a day later. Erase destroys the data key first and then drops the bytes; an
//     erasure that a crash interrupts is finished before the store opens again.
//   - Backups contain no key. Neither restoring one nor importing an older keyring brings back anything whose data key
//     an erasure has destroyed, as far as the keyring at hand records it.
//   - One process at a time. While another holds the directory, the store is unavailable and says which process it is.
//
// Writes are serialised and each commit is synced, so throughput comes from
// batches. A context ends the wait for the write lock; a commit that has begun
// is not interrupted.
//
// BUG(badger): Badger ends the process on some damage and, by SIGBUS, on a disk
// that fills faster than free space is measured. Panics on the calling
// goroutine become [storage.ErrUnavailable]; those in Badger's goroutines
// cannot be caught.
package badger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// Config of a store.
type Config struct {
	// Dir holds everything except the key-encryption key: data/, keyring/ and
	// VERSION. Made with mode 0700.
	Dir string
	// Key is the key-encryption key, [KeySize] bytes. If it is empty, KeyFile
	// is read.
	Key []byte
	// KeyFile holds the key as hex or base64 text. If that is not the store's
	// key, the store looks for its own in a file next to it that is named by
	// the key's id (store-0123456789abcdef.key). Outside Dir, a copy of Dir
	// alone opens nothing.
	KeyFile string
	// NewKey is where the key of a new store is put.
	NewKey NewKeyPlace
	// MinFreeBytes is the free disk space below which writes are refused:
	// Badger maps its files into memory, so a full disk would kill the process.
	// Deletes and erasures continue down to a quarter of it.
	MinFreeBytes uint64
	// MemoryBytes is how much memory the process may use, without the files
	// that it maps; 0 = unlimited. Below 96 MiB memory tables and merges are
	// small, which costs processor time, and [Config.MaxWrite] is lower.
	MemoryBytes int64
	// MaxUsers and MaxTenantUsers bound the users of the store and of one
	// tenant; 0 = no bound. See users.go.
	MaxUsers       int
	MaxTenantUsers int
	// FreeBytes measures the free space of the file system that holds a
	// directory; nil asks the operating system.
	FreeBytes func(dir string) (uint64, error) `json:"-"`
	// Fatal ends the process where continuing would lose memories. nil = the
	// goroutine concerned blocks instead.
	Fatal func(reason string) `json:"-"`
}

// DefaultConfig lacks only Dir and a key.
func DefaultConfig() Config {
	return Config{MinFreeBytes: 64 << 20, MaxUsers: 1_000_000, MaxTenantUsers: 100_000}
}

// Validate returns all problems.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("dir: must be set"))
	}
	if len(c.Key) == 0 && c.KeyFile == "" {
		errs = append(errs, errors.New("keyFile: must be set if there is no key"))
	}
	if n := len(c.Key); n != 0 && n != KeySize {
		errs = append(errs, fmt.Errorf("key: must be %d bytes long, not %d", KeySize, n))
	}
	return errors.Join(errs...)
}

// Store is a store that may or may not be open. While it is not, every method
// returns at once an error that wraps [storage.ErrUnavailable] and says why.
type Store struct {
	cfg   Config
	log   *slog.Logger
	dir   directory
	files *dataFiles // used by one opening at a time, then by the session
	space *freeSpace

	damaged atomic.Uint64
	panics  atomic.Uint64

	mu       sync.Mutex // guards what follows; never held during I/O
	session  *session   // nil while not open
	opening  bool       // only one Open or Run at a time
	reason   string     // why session is nil
	failures openFailures
	replaced bool   // SetAside has renamed its data
	missing  string // path of the mark that its data were missing when it was opened; "" = they were not
}

// openFailures are the failed attempts to open a store since it was last open.
type openFailures struct {
	attempts uint64
	damaged  uint64 // of the last ones in a row, those that found damaged data
	noRetry  bool   // Badger panicked while opening, and left goroutines and mapped files behind
}

var (
	_ storage.Store        = (*Store)(nil)
	_ storage.Local        = (*Store)(nil)
	_ storage.Digester     = (*Store)(nil)
	_ storage.ScopeLister  = (*Store)(nil)
	_ storage.Prober       = (*Store)(nil)
	_ storage.RecordReader = (*Store)(nil)
	_ storage.PrefixReader = (*Store)(nil)
	_ storage.Reaper       = (*Store)(nil)
	_ storage.KeyRotator   = (*Store)(nil)
	_ storage.BulkEraser   = (*Store)(nil)
	_ storage.Backuper     = (*Store)(nil)
)

// New returns a closed store: call Run, or Open and Close. A nil log discards.
func New(cfg Config, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, log: log.With("store", cfg.Dir), dir: directory(cfg.Dir), space: newFreeSpace(cfg), reason: "not opened yet"}
	s.files = &dataFiles{dir: s.dir, sizes: cfg.sizes(), log: s.log, damaged: &s.damaged}
	return s
}

// Health is the state of a store for status pages.
type Health struct {
	Open   bool
	Reason string // why it is not open, or refuses writes; "" = neither
	// FreeBytes was measured at most some seconds ago while the store is open;
	// 0 = unknown.
	FreeBytes uint64
	Damaged   uint64 // files found damaged and reads of unreadable records, since the start
	Panics    uint64 // of Badger, caught since the start

	// Missing is the path of the mark that the store's data were missing when
	// it was opened; "" = they were not.
	Missing string

	FailedOpens  uint64 // failed attempts to open it since it was last open
	DamagedOpens uint64 // how many of these, the last ones in a row, found damaged data (not keys, locks, permissions or space)
	NoRetry      bool   // it will not be opened again in this process
}

// MeasureFree measures the free space on the store's file system.
func (s *Store) MeasureFree() (uint64, error) { return s.space.measureNow() }

// Health returns the state of the store without any I/O.
func (s *Store) Health() Health {
	s.mu.Lock()
	h := Health{
		Open: s.session != nil, Reason: s.reason, Missing: s.missing,
		FailedOpens: s.failures.attempts, DamagedOpens: s.failures.damaged, NoRetry: s.failures.noRetry,
	}
	s.mu.Unlock()
	h.FreeBytes = s.space.last()
	h.Damaged = s.damaged.Load()
	h.Panics = s.panics.Load()
	if h.Open && h.FreeBytes > 0 && h.FreeBytes < s.cfg.MinFreeBytes {
		h.Reason = s.space.reason(h.FreeBytes)
	}
	return h
}

// InstallSecret implements [storage.Local].
func (s *Store) InstallSecret(ctx context.Context) (secret []byte, err error) {
	err = s.do(ctx, func(se *session) error {
		secret = slices.Clone(se.keys.install)
		return nil
	})
	return secret, err
}

// do runs an operation on the open session. A panic of Badger becomes
// ErrUnavailable.
func (s *Store) do(ctx context.Context, operation func(se *session) error) (err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	return operation(se)
}

// read runs an operation with a view of the store and the key of a scope, nil
// if the scope is empty.
func (s *Store) read(ctx context.Context, scope storage.Scope, operation func(se *session, txn *badgerdb.Txn, key *scopeKey) error) error {
	return s.do(ctx, func(se *session) error {
		if err := scope.Validate(); err != nil {
			return err
		}
		key, err := se.keys.find(se.keys.scope(scope))
		if err != nil {
			return err
		}
		txn := se.db.NewTransaction(false)
		defer txn.Discard()
		return operation(se, txn, key)
	})
}

// write runs an operation with a batch, under the write lock, if there is space
// for size bytes (see [freeSpace.reserve]).
func (s *Store) write(ctx context.Context, size int, divisor uint64, operation func(se *session, b *batch) error) error {
	return s.do(ctx, func(se *session) error {
		if err := se.lockWrites(ctx); err != nil {
			return err
		}
		defer se.unlockWrites()
		if err := se.space.reserve(uint64(size), divisor); err != nil {
			return err
		}
		b := se.newBatch()
		defer b.discard()
		return operation(se, b)
	})
}

// begin starts an operation; the session stays open until finish.
func (s *Store) begin(ctx context.Context) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil, unavailable(s.reason)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.session.ops.Add(1)
	return s.session, nil
}

// finish ends an operation. It is deferred directly, so that it catches panics;
// faultsBefore is the result of debug.SetPanicOnFault(true), which turns a
// failed read of a mapped file into a panic.
func (s *Store) finish(se *session, faultsBefore bool, err *error) {
	if p := recover(); p != nil {
		s.panics.Add(1)
		s.log.Error("Badger panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = unavailable("Badger panicked")
	}
	debug.SetPanicOnFault(faultsBefore)
	se.ops.Done()
	*err = classify(*err)
	if errors.Is(*err, storage.ErrDamaged) {
		s.damaged.Add(1)
	}
}

// classify makes every error that is not part of the contract an
// ErrUnavailable.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*outputError](err); ok {
		return err
	}
	for _, known := range []error{
		storage.ErrUnavailable, storage.ErrNotFound, storage.ErrInvalid, storage.ErrDamaged,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
}

func unavailable(reason string) error {
	return fmt.Errorf("%w: %s", storage.ErrUnavailable, reason)
}

func now() storage.Time { return storage.Now() }

func expired(at, now storage.Time) bool { return at != 0 && at <= now }
