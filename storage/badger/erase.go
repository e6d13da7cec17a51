package badger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// eraseGroup is how many scopes of a tenant are dropped in one pass over the
// files, while all writes wait.
const eraseGroup = 16

// Erase implements [storage.Store]. All writes wait while the bytes are
// dropped, some tens of milliseconds in a small store. If it fails halfway the
// data key may be gone already; the rest is done when the scope is next written
// to or erased, or the store is next opened.
func (s *Store) Erase(ctx context.Context, scope storage.Scope) (receipt storage.Receipt, err error) {
	if err := scope.Validate(); err != nil {
		return receipt, err
	}
	err = s.do(ctx, func(se *session) error {
		receipt, err = se.eraseScopes(ctx, []hash16{se.keys.scope(scope)})
		return err
	})
	return receipt, err
}

// EraseTenant implements [storage.BulkEraser].
func (s *Store) EraseTenant(ctx context.Context, tenant string) (receipt storage.Receipt, err error) {
	if tenant == "" || len(tenant) > storage.MaxScopePart {
		return receipt, fmt.Errorf("erase tenant: empty or too long: %w", storage.ErrInvalid)
	}
	err = s.do(ctx, func(se *session) error {
		var scopes []hash16
		err := se.keys.each(func(h hash16) error {
			scope, err := se.keys.scopeOf(h)
			if err == nil && scope.Tenant == tenant {
				scopes = append(scopes, h)
			}
			return ctx.Err()
		})
		if err == nil {
			receipt, err = se.eraseScopes(ctx, scopes)
		}
		return err
	})
	return receipt, err
}

// EraseAll implements [storage.BulkEraser]. All writes wait until it ends.
func (s *Store) EraseAll(ctx context.Context) (storage.Receipt, error) {
	receipt := storage.Receipt{Records: make(map[storage.Bucket]int)}
	err := s.do(ctx, func(se *session) error {
		if err := se.lockWrites(ctx); err != nil {
			return err
		}
		defer se.unlockWrites()
		if err := se.space.reserve(eraseSpace, forDeletes); err != nil {
			return err
		}
		se.count(func(level byte) []byte { return []byte{level} }, &receipt)
		var scopes []hash16
		if err := se.keys.each(func(h hash16) error { scopes = append(scopes, h); return ctx.Err() }); err != nil {
			return err
		}
		receipt.Scopes = len(scopes)
		for _, h := range scopes {
			if err := se.markErasure(h); err != nil {
				return err
			}
		}
		var prefixes [][]byte
		for _, level := range levels() {
			prefixes = append(prefixes, []byte{level})
		}
		if err := se.finishErase(slices.Collect(maps.Keys(se.unfinished)), prefixes); err != nil {
			return fmt.Errorf("finish erasure: %w", err)
		}
		return nil
	})
	if err != nil {
		return storage.Receipt{}, err
	}
	receipt.At = now()
	return receipt, nil
}

// eraseSpace is the disk space that an erasure may need, in bytes.
const eraseSpace = 1 << 20

// eraseScopes erases scopes, some at a time.
func (se *session) eraseScopes(ctx context.Context, scopes []hash16) (receipt storage.Receipt, err error) {
	receipt.Records = make(map[storage.Bucket]int)
	for group := range slices.Chunk(scopes, eraseGroup) {
		if err := se.eraseGroup(ctx, group, &receipt); err != nil {
			return storage.Receipt{}, err
		}
	}
	receipt.At = now()
	return receipt, nil
}

// eraseGroup erases some scopes and adds them to receipt.
func (se *session) eraseGroup(ctx context.Context, scopes []hash16, receipt *storage.Receipt) error {
	if err := se.lockWrites(ctx); err != nil {
		return err
	}
	defer se.unlockWrites()
	if err := se.space.reserve(eraseSpace, forDeletes); err != nil {
		return err
	}
	var marked []hash16
	for _, h := range scopes {
		memories := receipt.Memories
		records := se.count(func(level byte) []byte { return scopePrefix(level, h) }, receipt)
		hasKey, err := exists(se.keys.scopePath(h)) // an unreadable key must not prevent the erasure
		if err != nil {
			return err
		}
		if _, unfinished := se.unfinished[h]; !hasKey && !unfinished && receipt.Memories == memories && records == 0 {
			continue
		}
		receipt.Scopes++
		if err := se.markErasure(h); err != nil {
			return err
		}
		marked = append(marked, h)
	}
	if len(marked) == 0 {
		return nil
	}
	if err := se.finishErase(marked, prefixesOf(marked)); err != nil {
		return fmt.Errorf("finish erasure: %w", err)
	}
	return nil
}

// markErasure begins an erasure, which from here on will be finished. Needs
// writeLock.
func (se *session) markErasure(h hash16) error {
	if err := se.keys.mark(h); err != nil {
		return err
	}
	se.unfinished[h] = struct{}{}
	return nil
}

// finishErase finishes marked erasures, whose bytes are all under the prefixes.
// Each step may be repeated; the marks are removed last. Needs writeLock.
func (se *session) finishErase(scopes []hash16, prefixes [][]byte) error {
	for _, h := range scopes {
		if err := se.keys.destroy(h); err != nil {
			return err
		}
	}
	if err := se.drop(prefixes); err != nil {
		return err
	}
	// A log that came back after a power cut would be data without a key, and
	// without the mark that explains it.
	if err := syncDir(se.db.Opts().Dir); err != nil {
		return err
	}
	for _, h := range scopes {
		if err := se.keys.unmark(h); err != nil {
			return err
		}
		delete(se.unfinished, h)
	}
	return nil
}

func prefixesOf(scopes []hash16) (prefixes [][]byte) {
	for _, h := range scopes {
		for _, level := range levels() {
			prefixes = append(prefixes, scopePrefix(level, h))
		}
	}
	return prefixes
}

// drop makes Badger rewrite its files without these prefixes. Badger skips a
// prefix without live keys even if bytes of deleted ones are still on disk, so
// each prefix is given a live key first.
func (se *session) drop(prefixes [][]byte) error {
	se.compacting.Lock()
	defer se.compacting.Unlock()
	resume, err := se.inventory.suspend()
	defer resume()
	if err != nil {
		return err
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
		if !se.any(prefixes) { // Badger only logs a failure to compact its first level
			return nil
		}
	}
	return errors.New("dropping a prefix left some of its keys")
}

// count adds what is under the prefix of each level, by keys, and returns the
// number of records.
func (se *session) count(prefix func(level byte) []byte, receipt *storage.Receipt) (records int) {
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	receipt.Memories += countKeys(txn, prefix(levelMemory))
	for _, b := range storage.Buckets() {
		if n := countKeys(txn, prefix(levelOf(b))); n > 0 {
			receipt.Records[b] += n
			records += n
		}
	}
	return records
}

func countKeys(txn *badgerdb.Txn, prefix []byte) int {
	it := newIterator(txn, prefix)
	defer it.Close()
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		if len(it.Item().Key()) > scopeEnd { // a bare prefix is a mark of drop
			n++
		}
	}
	return n
}
