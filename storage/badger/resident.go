package badger

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"

	"github.com/remora-proxy/remora/storage/mapped"
)

// ReleaseTables lets go of the pages of tables that reading has mapped in. They stay in the page cache and come back at a
// touch. What is let go of must not be unmapped meanwhile, for something else may be mapped in its place: an iterator holds
// every table that is there when it begins, and what Badger lists before and after that was there.
func (s *Store) ReleaseTables(ctx context.Context) (err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	before := make(map[uint64]bool)
	for _, t := range se.db.Tables() {
		before[t.ID] = true
	}
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	it := newIterator(txn, nil)
	defer it.Close()
	dir, err := filepath.EvalSymlinks(s.dataDir())
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	held := make(map[string]bool)
	for _, t := range se.db.Tables() {
		if before[t.ID] {
			held[filepath.Join(dir, fmt.Sprintf("%06d.sst", t.ID))] = true
		}
	}
	return mapped.Release(func(path string) bool { return held[path] })
}
