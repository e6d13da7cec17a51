package badger

import (
	"context"
	"runtime/debug"

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
	defer b.discard()
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
		if err := b.addCounted(key, r.changes, r.counts); err != nil {
			return 0, err
		}
	}
	if err := se.commitWaste(b); err != nil {
		return 0, err
	}
	return n, nil
}
