package badger

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// session is an open store.
type session struct {
	db    *badgerdb.DB
	sizes sizes
	keys  *keyring
	space *freeSpace
	ops   sync.WaitGroup

	// writeLock serialises writes: reading a value and replacing it must be one
	// step, and Badger refuses writes while it drops a prefix. It is a channel,
	// so that waiting for it can end with a context.
	writeLock chan struct{}
	// unfinished are scopes whose erasure has failed halfway. It is finished
	// before anything is written to them. Guarded by writeLock, like garbage.
	unfinished map[hash16]struct{}
	garbage    garbage

	// compacting is held while Badger compacts or drops on request: both stop
	// and restart its own compactions, and must not overlap. It may be locked
	// under writeLock, never the other way round.
	compacting sync.Mutex

	inventory inventoryUpdater
	backups   atomic.Int32 // under way
	rotating  sync.Mutex   // held by RotateKey
}

func newSession(db *badgerdb.DB, size sizes, keys *keyring, space *freeSpace, files *dataFiles) *session {
	se := &session{
		db: db, sizes: size, keys: keys, space: space,
		writeLock: make(chan struct{}, 1), unfinished: make(map[hash16]struct{}),
	}
	se.inventory.files = files
	if files != nil {
		se.inventory.manifest, files.manifest = files.manifest, manifest{}
	}
	return se
}

// lockWrites takes the write lock, unless ctx ends first.
func (se *session) lockWrites(ctx context.Context) error {
	select {
	case se.writeLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (se *session) unlockWrites() { <-se.writeLock }

// writableKey returns the key to write into a scope with, made now if the scope
// is new. Needs writeLock.
func (se *session) writableKey(scope storage.Scope) (*scopeKey, error) {
	if len(se.unfinished) > 0 {
		h := se.keys.scope(scope)
		if _, unfinished := se.unfinished[h]; unfinished {
			if err := se.finishErase([]hash16{h}, prefixesOf([]hash16{h})); err != nil {
				return nil, err
			}
		}
	}
	return se.keys.findOrMake(scope)
}

// any reports whether there is a key with one of the prefixes.
func (se *session) any(prefixes [][]byte) bool {
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	return slices.ContainsFunc(prefixes, func(p []byte) bool {
		it := newIterator(txn, p)
		defer it.Close()
		it.Rewind()
		return it.Valid()
	})
}

// A scope that has data always has a key: the key is durable before the first
// data are written, and an erasure, which destroys it, leaves its mark until
// they are gone. So data with neither key nor mark have lost their key, and no
// other key may be made.

// maxReported limits the scopes without a key that are remembered as reported;
// beyond, one may be reported again.
const maxReported = 1024

// dataReporter returns the hasData of a keyring. It is asked only about scopes
// without a key, and logs each that has data once.
func (se *session) dataReporter(log *slog.Logger) func(h hash16) bool {
	reported := make(map[hash16]struct{})
	return func(h hash16) bool {
		if !se.any(prefixesOf([]hash16{h})) {
			return false
		}
		if _, known := reported[h]; !known {
			if len(reported) >= maxReported {
				clear(reported)
			}
			reported[h] = struct{}{}
			log.Error("a user's key is missing from the keyring, but there is data of that user: it is neither read nor added to until the key is put back or the user is erased",
				"file", se.keys.scopePath(h))
		}
		return true
	}
}

// countKeyless counts the scopes that have data and no key, with a seek for
// each scope and level.
func (se *session) countKeyless(ctx context.Context) (n int, err error) {
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	scopes := make(map[hash16]struct{})
	for _, level := range levels() {
		if err := scopesOfLevel(ctx, txn, level, scopes); err != nil {
			return 0, err
		}
	}
	for h := range scopes {
		lost, err := se.keys.keyLost(h)
		if err != nil {
			return n, err
		}
		if lost {
			n++
		}
	}
	return n, nil
}

func scopesOfLevel(ctx context.Context, txn *badgerdb.Txn, level byte, scopes map[hash16]struct{}) error {
	it := newIterator(txn, []byte{level})
	defer it.Close()
	for it.Rewind(); it.Valid(); {
		k := it.Item().Key()
		if len(k) <= scopeEnd { // a mark of drop
			it.Next()
			continue
		}
		h := hash16(k[1:scopeEnd])
		scopes[h] = struct{}{}
		it.Seek(prefixEnd(scopePrefix(level, h)))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// prefixEnd returns the first key after all those that begin with prefix, which
// is not all ones.
func prefixEnd(prefix []byte) []byte {
	k := slices.Clone(prefix)
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]++; k[i] != 0 {
			return k[:i+1]
		}
	}
	return nil
}
