package badger

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// Probe implements [storage.Prober]. It looks for the index entry alone, most often in filters that say that there is none.
func (s *Store) Probe(ctx context.Context, refs []storage.MemoryRef) (found []bool, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if n := len(refs); n > storage.MaxRecords {
		return nil, fmt.Errorf("probe: %d references are more than %d: %w", n, storage.MaxRecords, storage.ErrInvalid)
	}
	for i, r := range refs {
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("reference %d: %w", i, err)
		}
	}
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	found = make([]bool, len(refs))
	for i, r := range refs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key, err := se.keys.find(se.keys.scope(r.Scope))
		if err != nil {
			return nil, err
		}
		if key == nil {
			continue
		}
		_, err = txn.Get(nameKey(levelIndex, key.hash, se.keys.id(key.hash, r.ID)))
		if err != nil && !errors.Is(err, badgerdb.ErrKeyNotFound) {
			return nil, err
		}
		found[i] = err == nil
	}
	return found, nil
}

// Record implements [storage.RecordReader].
func (s *Store) Record(ctx context.Context, ref storage.RecordRef) (r storage.Record, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return r, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if err := ref.Validate(); err != nil {
		return r, err
	}
	key, err := se.keys.find(se.keys.scope(ref.Scope))
	if err != nil {
		return r, err
	}
	if key == nil {
		return r, storage.ErrNotFound
	}
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	diskKey := se.keys.record(key.hash, ref.Bucket, ref.Key)
	_, err = txn.Get(diskKey)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return r, storage.ErrNotFound
	}
	if err == nil {
		r, err = readRecord(txn, key, ref.Bucket, diskKey)
	}
	switch {
	case err != nil:
		return storage.Record{}, err
	case expired(r.ExpiresAt, now()):
		return storage.Record{}, storage.ErrNotFound
	}
	return r, nil
}
