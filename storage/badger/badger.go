// Package badger keeps memories and local records in an embedded Badger database on the local disk. It implements
// [storage.Store] and [storage.Local].
//
// Guarantees, beside those of package storage:
//
//   - Sealing. Every value is sealed with AES-256-GCM under a random data key of its scope, bound to its place on disk and
//     its version, so that a value that was moved, swapped or altered is [storage.ErrDamaged]. An older version in the
//     place of a newer one is so when read by id; in a scan only the scope's digest tells, as it tells what is missing
//     ([storage.Verify]). A memory, its index entry and the digest rolled back together are not noticed. Data keys lie in a
//     keyring beside the data, wrapped by the key-encryption key, which this package never writes anywhere but to key files.
//   - Disk keys are keyed hashes. In the clear stand: kinds of records, event times in milliseconds, counts, sizes and
//     expiry times. layout.go has the table.
//   - A key is generated only for a new store. Where there is data and the key or the keyring is missing or wrong, the
//     store refuses to open and touches nothing. A data key is generated only for a scope without data: where it is missing,
//     nothing of the scope is read or written but by Erase, with an error that wraps [storage.ErrDamaged].
//   - Delete makes records unreadable through this package at once; their sealed bytes stay in the files, openable with the
//     scope's data key, until a Reap has Badger compact them away, a day later at the latest. Erase destroys the data key
//     first and then has Badger drop the bytes; an erasure cut short by a crash is finished before the store opens again.
//   - A backup holds no key. Restoring one, or importing an older keyring, brings back nothing whose data key an erasure
//     has destroyed, as long as the keyring that knows of it is at hand.
//   - One process at a time. While another one holds the directory, the store is unavailable and says who holds it.
//
// Writes are serialised and each commit is synced to disk, so throughput comes from batches: callers group their
// commits. A context ends the wait for one's turn to write; a commit that has begun is not cut short.
//
// BUG(badger): Badger ends the process on some damage and, by SIGBUS, on a disk that fills behind the free-space check.
// Panics on the calling goroutine become [storage.ErrUnavailable]; those in Badger's own goroutines cannot be caught. So
// the program keeps the store in a process of its own, by storage/process.
package badger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Config of a store.
type Config struct {
	// Dir holds everything of the store but the key-encryption key: data/, keyring/ and VERSION. Made with mode 0700.
	Dir string
	// Key is the key-encryption key, [KeySize] bytes. Without it KeyFile is read.
	Key []byte
	// KeyFile holds the key as hex or base64 text. A store whose key it does not hold looks for it beside KeyFile, in a file named
	// by the key's id (store-0123456789abcdef.key). Best kept outside Dir, so that a copy of Dir alone opens nothing.
	KeyFile string
	// NewKey says where a key that is made for a new store goes.
	NewKey NewKeyPlace
	// MinFreeBytes is the free space below which nothing is written: Badger's files are mapped into memory, so a full
	// disk would kill the process. Deleting and erasing go on down to a quarter of it.
	MinFreeBytes uint64
	// MemoryBytes is what the process that holds the store should get along with, beside the files that it maps; 0 = no matter. Below 96 MiB
	// memory tables and what is merged at a time are small, which costs processor time, and writes are bounded by [Config.MaxWrite].
	MemoryBytes int64
	// FreeBytes tells the free space of the file system that holds a directory; nil asks the operating system.
	FreeBytes func(dir string) (uint64, error) `json:"-"`
	// Fatal ends the process where going on would lose memories. nil = what would do so stands still instead.
	Fatal func(reason string) `json:"-"`
}

// DefaultConfig lacks only Dir and a key.
func DefaultConfig() Config { return Config{MinFreeBytes: 64 << 20} }

// Validate returns all problems.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("dir: must be set"))
	}
	if len(c.Key) == 0 && c.KeyFile == "" {
		errs = append(errs, errors.New("keyFile: must be set where there is no key"))
	}
	if n := len(c.Key); n != 0 && n != KeySize {
		errs = append(errs, fmt.Errorf("key: must be %d bytes long, not %d", KeySize, n))
	}
	return errors.Join(errs...)
}

// Store is a store that may or may not be open. While it is not, every method returns an error that wraps
// [storage.ErrUnavailable] and tells why, at once.
type Store struct {
	cfg   Config
	log   *slog.Logger
	space *freeSpace

	manifest knownManifest // whoever opens it has it

	damaged atomic.Uint64
	panics  atomic.Uint64

	mu       sync.Mutex // guards what follows; never held during I/O
	session  *session   // nil while not open
	opening  bool       // by Open or Run, of which only one may be under way
	reason   string     // why session is nil
	hopeless bool       // opening panicked inside Badger, which leaves goroutines and maps behind: not tried again
	damage   bool       // the last attempt to open it says that its files are damaged
	attempts uint64     // to open it that failed, since it was last open
	damages  uint64     // how many of them in a row, up to the last one, failed on its files
	replaced bool       // SetAside has taken its data away
	missing  string     // the mark of data that were gone when it was opened; "" = they were not
}

var (
	_ storage.Store = (*Store)(nil)
	_ storage.Local = (*Store)(nil)

	_ storage.Digester    = (*Store)(nil)
	_ storage.ScopeLister = (*Store)(nil)
	_ storage.Reaper      = (*Store)(nil)
	_ storage.KeyRotator  = (*Store)(nil)
	_ storage.Backuper    = (*Store)(nil)
	_ storage.BulkEraser  = (*Store)(nil)

	_ storage.Prober       = (*Store)(nil)
	_ storage.RecordReader = (*Store)(nil)
)

// New makes a closed store: call Run, or Open and Close. A nil log discards.
func New(cfg Config, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{
		cfg:    cfg,
		log:    log.With("store", cfg.Dir),
		space:  newFreeSpace(cfg),
		reason: "not opened yet",
	}
}

// Health is what a status page tells of a store.
type Health struct {
	Open   bool
	Reason string // why it is not open, or why it takes no writes; "" = all is well
	// FreeBytes as last measured, at most some seconds ago while the store is open; 0 = not yet known.
	FreeBytes uint64
	Damaged   uint64 // records that could not be read, by count of readings since the start
	Panics    uint64 // panics of Badger that were caught since the start

	// Missing is the mark that the data of this store's keys were gone when it was opened; "" = they were not.
	Missing string

	// FailedOpens counts the attempts to open it that failed since it was last open; Damage says that the last one failed on
	// its files (not on keys, locks, rights or space), and Damages how many did in a row; Hopeless that there will be no
	// other one in this process.
	FailedOpens uint64
	Damage      bool
	Damages     uint64
	Hopeless    bool
}

// MeasureFree measures the free space where the store lies, now.
func (s *Store) MeasureFree() (uint64, error) { return s.space.now() }

// Health does no I/O.
func (s *Store) Health() Health {
	s.mu.Lock()
	h := Health{
		Open: s.session != nil, Reason: s.reason,
		FailedOpens: s.attempts, Damage: s.damage, Damages: s.damages, Hopeless: s.hopeless, Missing: s.missing,
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

func (s *Store) dataDir() string    { return filepath.Join(s.cfg.Dir, "data") }
func (s *Store) keyringDir() string { return filepath.Join(s.cfg.Dir, "keyring") }

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

// finish ends an operation. Deferred directly, so that it catches panics; faultsBefore is what
// debug.SetPanicOnFault(true) returned: with it even reading a mapped file that has lost its disk is a panic.
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

// classify makes everything that is not an answer of the contract an ErrUnavailable.
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

func now() storage.Time { return storage.TimeOf(time.Now()) }

func expired(at, now storage.Time) bool { return at != 0 && at <= now }
