package badger

import (
	"errors"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// change is one entry to set or remove.
type change struct {
	key, value []byte
	remove     bool
}

func (c change) size() int { return len(c.key) + len(c.value) + entryOverhead }

func (c change) apply(txn *badgerdb.Txn) error {
	if c.remove {
		return txn.Delete(c.key)
	}
	return txn.Set(c.key, c.value)
}

// batch collects changes into as few transactions as possible. Reads through
// txn see what was added before. Its user holds the write lock, and defers
// discard.
type batch struct {
	db      *badgerdb.DB
	limit   sizes
	txn     *badgerdb.Txn
	size    int
	entries int
	digests map[hash16]*runningDigest
}

func (se *session) newBatch() *batch {
	return &batch{db: se.db, limit: se.sizes, txn: se.db.NewTransaction(true), digests: make(map[hash16]*runningDigest)}
}

// add puts all changes into the running transaction or, if they do not fit,
// commits that and puts them into the next. Changes that do not fit one
// transaction are ErrInvalid.
func (b *batch) add(changes []change) error { return b.addReserving(changes, 0, 0) }

// addReserving is add, and reserves room for more entries of the given total
// size in the same transaction.
func (b *batch) addReserving(changes []change, entries, size int) error {
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

// commit is the commit point: when it returns nil, the changes are synced to
// disk, and with them all that commitVolatile has left to the operating system.
func (b *batch) commit() error {
	if b.entries == 0 {
		return nil
	}
	if err := b.commitVolatile(); err != nil {
		return err
	}
	return b.db.Sync()
}

// commitVolatile commits without a sync. A crash of the machine may lose the
// changes; one of the process does not, because Badger's log is a mapped file.
// The write lock ensures that no other commit starts a new log between a commit
// and its Sync, which would then sync the wrong one.
func (b *batch) commitVolatile() error {
	if err := b.writeDigests(); err != nil {
		return err
	}
	return b.txn.Commit()
}

// discard drops what was not committed.
func (b *batch) discard() { b.txn.Discard() }

// view calls see with a value that is valid until see returns; nil if there is
// none.
func view(txn *badgerdb.Txn, key []byte, see func(value []byte) error) error {
	item, err := txn.Get(key)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return see(nil)
	}
	if err != nil {
		return err
	}
	return item.Value(see)
}

// get returns a copy of a value, nil if there is none.
func get(txn *badgerdb.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := item.ValueCopy(nil)
	if v == nil && err == nil {
		v = []byte{}
	}
	return v, err
}

// newIterator iterates over the live keys with a prefix. Values are stored with
// their keys, so nothing is prefetched.
func newIterator(txn *badgerdb.Txn, prefix []byte) *badgerdb.Iterator {
	return txn.NewIterator(iteratorOptions(prefix))
}

func iteratorOptions(prefix []byte) badgerdb.IteratorOptions {
	o := badgerdb.DefaultIteratorOptions
	o.Prefix = prefix
	o.PrefetchValues = false
	return o
}
