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

// eraseGroup is how many scopes of a tenant are dropped in one walk over the files, while all writes wait.
const eraseGroup = 16

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
	receipt.Records = make(map[storage.Bucket]int)
	if err := se.eraseGroup(ctx, []hash16{se.keys.scope(scope)}, &receipt); err != nil {
		return storage.Receipt{}, err
	}
	receipt.At = now()
	return receipt, nil
}

// EraseTenant implements [storage.BulkEraser].
func (s *Store) EraseTenant(ctx context.Context, tenant string) (receipt storage.Receipt, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return receipt, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if tenant == "" || len(tenant) > storage.MaxScopePart {
		return receipt, fmt.Errorf("erase tenant: empty or too long: %w", storage.ErrInvalid)
	}
	var scopes []hash16
	err = se.keys.each(func(h hash16) error {
		scope, err := se.keys.scopeOf(h)
		if err == nil && scope.Tenant == tenant {
			scopes = append(scopes, h)
		}
		return ctx.Err()
	})
	if err != nil {
		return receipt, err
	}
	receipt.Records = make(map[storage.Bucket]int)
	for group := range slices.Chunk(scopes, eraseGroup) {
		if err := se.eraseGroup(ctx, group, &receipt); err != nil {
			return storage.Receipt{}, err
		}
	}
	receipt.At = now()
	return receipt, nil
}

// EraseAll implements [storage.BulkEraser]. All writes wait meanwhile.
func (s *Store) EraseAll(ctx context.Context) (receipt storage.Receipt, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return receipt, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if err := se.acquire(ctx); err != nil {
		return receipt, err
	}
	defer se.release()
	if err := se.space.take(1<<20, 4); err != nil {
		return receipt, err
	}
	receipt.Records = make(map[storage.Bucket]int)
	se.count(func(level byte) []byte { return []byte{level} }, &receipt)
	var scopes []hash16
	if err := se.keys.each(func(h hash16) error { scopes = append(scopes, h); return ctx.Err() }); err != nil {
		return storage.Receipt{}, err
	}
	receipt.Scopes = len(scopes)
	for _, h := range scopes {
		if err := se.begun(h); err != nil {
			return storage.Receipt{}, err
		}
	}
	var prefixes [][]byte
	for _, level := range levels() {
		prefixes = append(prefixes, []byte{level})
	}
	if err := se.finishErase(slices.Collect(maps.Keys(se.unfinished)), prefixes); err != nil {
		return storage.Receipt{}, fmt.Errorf("finish erasure: %w", err)
	}
	receipt.At = now()
	return receipt, nil
}

// eraseGroup erases some scopes and counts them in.
func (se *session) eraseGroup(ctx context.Context, scopes []hash16, receipt *storage.Receipt) error {
	if err := se.acquire(ctx); err != nil {
		return err
	}
	defer se.release()
	if err := se.space.take(1<<20, 4); err != nil {
		return err
	}
	var marked []hash16
	for _, h := range scopes {
		before := receipt.Memories
		records := se.count(func(level byte) []byte { return scopePrefix(level, h) }, receipt)
		// A key that cannot be read must not keep its scope from being erased, so only its absence is asked for.
		has, err := exists(se.keys.scopePath(h))
		if err != nil {
			return err
		}
		if !has && !se.isUnfinished(h) && receipt.Memories == before && records == 0 {
			continue
		}
		receipt.Scopes++
		if err := se.begun(h); err != nil {
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

// begun marks an erasure: from here on it is carried through. Needs the turn.
func (se *session) begun(h hash16) error {
	if err := se.keys.mark(h); err != nil {
		return err
	}
	se.unfinished[h] = struct{}{}
	return nil
}

// finishErase carries marked erasures through, whose bytes all lie under the prefixes. Each step may be repeated; the
// marks go last. Needs the turn.
func (se *session) finishErase(scopes []hash16, prefixes [][]byte) error {
	for _, h := range scopes {
		if err := se.keys.destroy(h); err != nil {
			return err
		}
	}
	if err := se.drop(prefixes); err != nil {
		return err
	}
	// A log that came back after a power cut would be data without a key, and without the mark that says why.
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

// drop has Badger rewrite its files without these prefixes. Badger skips a prefix without live keys, though deleted and
// expired ones still have their bytes on disk, so each prefix is given a live key first.
func (se *session) drop(prefixes [][]byte) error {
	se.files.Lock()
	defer se.files.Unlock()
	note, err := se.unnote()
	defer note()
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

// count adds what lies under the prefix of each level, by keys, and returns how many records there were.
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
