package badger

import (
	"context"
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

	// turn is held by whoever writes: reading what is there and replacing it must be one step, and Badger refuses
	// writes while it drops a prefix.
	turn chan struct{}
	// unfinished holds scopes whose erasure failed on the way: it is finished before anything is written there.
	// Owned by the holder of turn.
	unfinished map[hash16]struct{}
	waste      waste

	// files is held while Badger is told to compact or to drop: both stop its own compaction and start it again, and it
	// does not expect both at once. Taken by holders of the turn; nobody waits for the turn with it.
	files sync.Mutex

	noting   sync.Mutex // guards the inventory and what follows
	unnoted  bool       // the inventory names nothing, and stays so
	manifest knownManifest
	named    []uint64 // its tables, in order
	synced   []uint64 // logs of the inventory, which were synced before they came into it

	backups  atomic.Int32 // under way
	rotating sync.Mutex   // by RotateKey
}

// acquire takes the turn to write, unless ctx ends first.
func (se *session) acquire(ctx context.Context) error {
	select {
	case se.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (se *session) release() { <-se.turn }

// writableKey returns the key to write into a scope with, made now if the scope is new. Needs the turn.
func (se *session) writableKey(scope storage.Scope) (*scopeKey, error) {
	if len(se.unfinished) > 0 {
		if h := se.keys.scope(scope); se.isUnfinished(h) {
			if err := se.finishErase([]hash16{h}, prefixesOf([]hash16{h})); err != nil {
				return nil, err
			}
		}
	}
	return se.keys.obtain(scope)
}

func (se *session) isUnfinished(h hash16) bool {
	_, ok := se.unfinished[h]
	return ok
}

// change is one entry to set or delete.
type change struct {
	key, value []byte
	remove     bool
}

func (c change) size() int { return len(c.key) + len(c.value) + entryOverhead }

// batch collects changes into as few transactions as fit. Reading through txn sees what was added before.
type batch struct {
	db      *badgerdb.DB
	limit   sizes
	txn     *badgerdb.Txn
	size    int
	entries int
	tallies map[hash16]*tally
}

func (se *session) newBatch() *batch {
	return &batch{db: se.db, limit: se.sizes, txn: se.db.NewTransaction(true), tallies: make(map[hash16]*tally)}
}

// add puts changes into the running transaction, all of them or, where they do not fit, into the next one, having
// committed the running one. Changes that do not fit one transaction are ErrInvalid.
func (b *batch) add(changes []change) error { return b.addBeside(changes, 0, 0) }

// addBeside is add that keeps room for some entries more in the same transaction, of so many bytes together.
func (b *batch) addBeside(changes []change, entries, size int) error {
	entries += len(changes)
	for _, c := range changes {
		size += c.size()
	}
	if size > b.limit.maxTxn || entries > b.limit.maxEntries {
		return storage.ErrInvalid
	}
	if b.size+size > b.limit.maxTxn || b.entries+entries > b.limit.maxEntries {
		if err := b.commit(); err != nil {
			return err
		}
		b.txn, b.size, b.entries = b.db.NewTransaction(true), 0, 0
	}
	for _, c := range changes {
		if err := c.apply(b.txn); err != nil {
			return err
		}
	}
	b.size += size
	b.entries += entries
	return nil
}

// commit is the commit point: what was added is synced to disk when it returns nil, and with it all that commitVolatile
// has left to the operating system.
func (b *batch) commit() error {
	if b.entries == 0 {
		return nil
	}
	if err := b.commitVolatile(); err != nil {
		return err
	}
	return b.db.Sync()
}

// commitVolatile leaves it to the operating system when what was added gets to the disk, so a crash of the machine may
// take it. One of the process does not: Badger's log is a mapped file. Whoever holds the turn writes alone, so nothing
// comes between a commit and its Sync that could begin another log, which Sync would sync in the place of this one.
func (b *batch) commitVolatile() error {
	if err := b.writeTallies(); err != nil {
		return err
	}
	return b.txn.Commit()
}

// discard drops what was not committed. Deferred by whoever made the batch.
func (b *batch) discard() { b.txn.Discard() }

func (c change) apply(txn *badgerdb.Txn) error {
	if c.remove {
		return txn.Delete(c.key)
	}
	return txn.Set(c.key, c.value)
}
