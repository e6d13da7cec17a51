package badger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// Delete implements [storage.Store]. Calls of some thousand ids span several commits. What it leaves on disk: see the
// package doc.
func (s *Store) Delete(ctx context.Context, scope storage.Scope, ids ...string) (n int, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if err := scope.Validate(); err != nil {
		return 0, err
	}
	if err := se.acquire(ctx); err != nil {
		return 0, err
	}
	defer se.release()
	if err := se.space.take(uint64(len(ids))*200, 4); err != nil {
		return 0, err
	}
	key, err := se.keys.find(se.keys.scope(scope))
	if err != nil || key == nil {
		return 0, err
	}
	b := se.newBatch()
	defer func() { b.discard() }()
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if id == "" || len(id) > storage.MaxID {
			continue // cannot be the id of anything
		}
		r, err := se.planRemoval(b.txn, key, id)
		if err != nil {
			return 0, err
		}
		if r.had {
			n++
		}
		if len(r.changes) > 0 {
			se.waste.bytes += sizeAt(b.txn, r.changes[0].key)
		}
		if err := b.addCounted(key, r.changes, r.counts); err != nil {
			return 0, err
		}
	}
	if err := se.commitWaste(b); err != nil {
		return 0, err
	}
	return n, nil
}

// Erase implements [storage.Store]. All writes wait while the bytes are dropped, some tens of milliseconds for a small
// store. If it fails on the way the data key may be gone already; the rest is finished when the scope is next written
// to or erased, or the store is next opened.
func (s *Store) Erase(ctx context.Context, scope storage.Scope) (receipt storage.Receipt, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return receipt, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if err := scope.Validate(); err != nil {
		return receipt, err
	}
	if err := se.acquire(ctx); err != nil {
		return receipt, err
	}
	defer se.release()
	if err := se.space.take(1<<20, 4); err != nil {
		return receipt, err
	}
	h := se.keys.scope(scope)
	receipt, err = se.count(h)
	if err != nil {
		return storage.Receipt{}, err
	}
	// A key that cannot be read must not keep its scope from being erased, so only its absence is asked for.
	has, err := exists(se.keys.scopePath(h))
	if err != nil {
		return storage.Receipt{}, err
	}
	if !has && !se.isUnfinished(h) && receipt.Memories == 0 && len(receipt.Records) == 0 {
		receipt.At = now()
		return receipt, nil
	}
	if err := se.keys.mark(h); err != nil {
		return storage.Receipt{}, err
	}
	se.unfinished[h] = struct{}{}
	if err := se.finishErase(h); err != nil {
		return storage.Receipt{}, fmt.Errorf("finish erasure: %w", err)
	}
	receipt.At = now()
	return receipt, nil
}

// finishErase carries a marked erasure through. Each step may be repeated; the mark goes last. Needs the turn.
func (se *session) finishErase(h hash16) error {
	if err := se.keys.destroy(h); err != nil {
		return err
	}
	if err := se.drop(h); err != nil {
		return err
	}
	if err := se.keys.unmark(h); err != nil {
		return err
	}
	delete(se.unfinished, h)
	return nil
}

// drop has Badger rewrite its files without the scope. Badger skips a prefix without live keys, though deleted and
// expired ones still have their bytes on disk, so each prefix is given a live key first.
func (se *session) drop(h hash16) error {
	all := levels()
	prefixes := make([][]byte, len(all))
	for i, level := range all {
		prefixes[i] = scopePrefix(level, h)
	}
	for range 3 {
		b := se.newBatch()
		defer b.discard()
		for _, p := range prefixes {
			if err := b.add([]change{{key: p}}); err != nil {
				return err
			}
		}
		if err := b.commit(); err != nil {
			return err
		}
		if err := se.db.DropPrefix(prefixes...); err != nil {
			return err
		}
		// Badger only logs that it could not compact its first level: look.
		if !se.any(prefixes) {
			return nil
		}
	}
	return errors.New("dropping a prefix left keys of it")
}

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

// count counts what a scope holds, by keys.
func (se *session) count(h hash16) (storage.Receipt, error) {
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	r := storage.Receipt{Records: make(map[storage.Bucket]int)}
	r.Memories = countKeys(txn, scopePrefix(levelMemory, h))
	for _, b := range storage.Buckets() {
		r.Records[b] = countKeys(txn, scopePrefix(levelOf(b), h))
	}
	maps.DeleteFunc(r.Records, func(_ storage.Bucket, n int) bool { return n == 0 })
	return r, nil
}

func countKeys(txn *badgerdb.Txn, prefix []byte) int {
	it := newIterator(txn, prefix)
	defer it.Close()
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		if len(it.Item().Key()) > len(prefix) { // a bare prefix is a mark of drop
			n++
		}
	}
	return n
}
