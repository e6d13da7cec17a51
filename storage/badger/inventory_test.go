package badger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// reopened returns an open store that was closed before with the memory "id" of
// the user "u".
func reopened(t *testing.T) (Config, *Store) {
	t.Helper()
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	mustClose(t, s)
	return cfg, mustOpen(t, cfg)
}

// TestKilledOpening guards that two kills during openings are no damage: the
// first may leave a table that a merge has just made, the second come after
// Badger deleted a log without records and before it made a new one.
func TestKilledOpening(t *testing.T) {
	for _, inventory := range []bool{true, false} {
		for _, unnamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("inventory %v, unnamed table %v", inventory, unnamed), func(t *testing.T) {
				cfg, s := reopened(t)
				to := leftByKill(t, cfg)
				mustClose(t, s)
				if !inventory { // killed before it was written
					if err := os.Remove(to.Dir + "/data/open"); err != nil {
						t.Fatal(err)
					}
				}
				if unnamed {
					b := mustRead(t, to.Dir+"/data/000001.sst")
					write(t, to.Dir+"/data/000002.sst", string(b))
				}
				s = New(to, nil)
				if err := s.files.check(); err != nil { // the second opening
					t.Fatal(err)
				}
				if err := os.Remove(onlyLog(t, to)); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, to) // the third opening
				if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil || s.Health().Damaged > 0 {
					t.Errorf("%v, %+v", err, s.Health())
				}
			})
		}
	}
}

// TestKilledClosing guards that a kill between two steps of closing is no
// damage: Badger has deleted the newest, empty log and the inventory is still
// there.
func TestKilledClosing(t *testing.T) {
	cfg, s := reopened(t)
	if err := s.UpdateInventory(); err != nil {
		t.Fatal(err)
	}
	open, err := s.files.list()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.session.db.Close(); err != nil {
		t.Fatal(err)
	}
	closed, err := s.files.list()
	if err != nil {
		t.Fatal(err)
	}
	if len(open.logs) != 1 || len(closed.logs) != 0 || !slices.Equal(open.tables, closed.tables) {
		t.Fatalf("open: %+v, closed: %+v: the test proves nothing", open, closed)
	}
	to := leftByKill(t, cfg)
	mustClose(t, s)
	s = mustOpen(t, to)
	if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil || s.Health().Damaged > 0 {
		t.Errorf("%v, %+v", err, s.Health())
	}
}

// TestKilledAfterErasing guards that a kill after an erasure, which removes
// tables without making newer ones, is no damage.
func TestKilledAfterErasing(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("gone"), memory("id", "text"))
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if _, err := s.Erase(t.Context(), scopeOf("gone")); err != nil {
		t.Fatal(err)
	}
	to := leftByKill(t, cfg)
	mustClose(t, s)
	if s = mustOpen(t, to); s.Health().Damaged > 0 {
		t.Errorf("%+v", s.Health())
	}
}

// TestKilledAfterAnEmptyMerge guards that a kill after a merge that left
// nothing is no damage, while a manifest that has lost its end is.
func TestKilledAfterAnEmptyMerge(t *testing.T) {
	cfg, s := reopened(t)
	path := filepath.Join(s.dir.data(), "MANIFEST")
	if err := s.UpdateInventory(); err != nil {
		t.Fatal(err)
	}
	one := mustRead(t, path)
	var keys [][]byte
	err := s.session.db.View(func(txn *badgerdb.Txn) error {
		it := newIterator(txn, nil)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			keys = append(keys, it.Item().KeyCopy(nil))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.session.db.Update(func(txn *badgerdb.Txn) error {
		for _, k := range keys {
			if err := txn.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if err := s.UpdateInventory(); err != nil {
		t.Fatal(err)
	}
	before, err := s.files.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	whole := mustRead(t, path)
	noted := mustRead(t, s.files.inventoryPath())
	if err := s.session.flush(); err != nil { // out of the first level, which Badger does not merge unasked
		t.Fatal(err)
	}
	if err := s.session.db.Flatten(1); err != nil {
		t.Fatal(err)
	}
	after, err := s.files.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	for id := range after.tables {
		if !before.tables[id] {
			t.Fatalf("table %d was made: the test proves nothing", id)
		}
	}
	if len(after.tables) >= len(before.tables) {
		t.Fatalf("tables %v, before %v: the test proves nothing", after.tables, before.tables)
	}
	left := func() Config {
		to := leftByKill(t, cfg)
		write(t, to.Dir+"/data/"+inventoryName, string(noted))
		return to
	}
	to, cut := left(), left()
	mustClose(t, s)
	if err := New(to, nil).files.check(); err != nil {
		t.Errorf("killed: %v", err)
	}
	if s = mustOpen(t, to); s.Health().Damaged > 0 {
		t.Errorf("killed: %+v", s.Health())
	}
	if len(one) >= len(whole) {
		t.Fatal("the manifest has not grown: the test proves nothing")
	}
	write(t, cut.Dir+"/data/MANIFEST", string(one)) // without its end
	if err := New(cut, nil).files.check(); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("a manifest without its end: %v", err)
	}
}

// TestLostFiles guards that tables which the inventory lists and the manifest
// does not are lost only if the manifest has not grown since.
func TestLostFiles(t *testing.T) {
	s := New(testConfig(t), nil)
	if err := os.MkdirAll(s.dir.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		was          inventory
		named        []uint64
		counts       manifestCounts
		logs, tables int
	}{
		"unchanged":                              {inventory{[]uint64{1, 2}, nil, manifestCounts{5, 3}}, []uint64{1, 2}, manifestCounts{5, 3}, 0, 0},
		"merged into another":                    {inventory{[]uint64{1, 2}, nil, manifestCounts{5, 3}}, []uint64{6}, manifestCounts{6, 5}, 0, 0},
		"merged into nothing":                    {inventory{[]uint64{1, 2}, nil, manifestCounts{5, 3}}, nil, manifestCounts{5, 5}, 0, 0},
		"merged into nothing, and a log missing": {inventory{[]uint64{1, 2}, []uint64{7}, manifestCounts{5, 3}}, nil, manifestCounts{5, 5}, 1, 0},
		"flushed and merged into nothing":        {inventory{[]uint64{1, 2}, []uint64{7}, manifestCounts{5, 3}}, nil, manifestCounts{6, 6}, 0, 0},
		"the end is missing":                     {inventory{[]uint64{1, 2}, nil, manifestCounts{5, 3}}, []uint64{1}, manifestCounts{4, 3}, 0, 1},
		"everything is missing":                  {inventory{[]uint64{1, 2}, nil, manifestCounts{5, 3}}, nil, manifestCounts{0, 0}, 0, 2},
		"manifest rewritten, merged":             {inventory{[]uint64{1, 2}, nil, manifestCounts{5, 3}}, []uint64{6}, manifestCounts{1, 0}, 0, 0},
		"without counts":                         {inventory{[]uint64{1, 2}, nil, manifestCounts{}}, []uint64{1}, manifestCounts{5, 4}, 0, 1},
	} {
		write(t, s.files.inventoryPath(), string(c.was.encode()))
		named := map[uint64]bool{}
		for _, id := range c.named {
			named[id] = true
		}
		if logs, tables, err := s.files.lostFiles(manifest{tables: named, counts: c.counts}); err != nil || logs != c.logs || tables != c.tables {
			t.Errorf("%s: got %d logs and %d tables, %v, want %d and %d", name, logs, tables, err, c.logs, c.tables)
		}
	}
}

// TestInventoryWhileMerging guards that files are never taken for lost, at
// whichever moment of a merge a kill comes.
func TestInventoryWhileMerging(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			r := storage.Record{Bucket: storage.BucketLedger, Scope: scopeOf("u"), Key: fmt.Sprint(i % 40), Value: make([]byte, 400<<10)}
			if err := s.PutRecords(t.Context(), []storage.Record{r}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer writing.Wait()
	defer close(stop)
	path := filepath.Join(s.dir.data(), "MANIFEST")
	merged := uint64(0)
	for began := time.Now(); merged < 60 && !t.Failed(); {
		if took := time.Since(began); took > 5*time.Minute || took > 20*time.Second && merged >= 10 {
			break // a slow disk makes fewer tables
		}
		if err := s.UpdateInventory(); err != nil {
			t.Fatal(err)
		}
		// What is found between two equal reads of the manifest is what a kill
		// could have left.
		for {
			before := mustRead(t, path)
			m, err := s.files.readManifest()
			if err != nil {
				continue // a record is being written
			}
			logs, tables, err := s.files.lostFiles(m)
			if err != nil {
				t.Fatal(err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				continue
			}
			if tables+logs > 0 {
				t.Fatalf("%d tables and %d logs would be missed", tables, logs)
			}
			for id := range m.tables {
				merged = max(merged, id)
			}
			break
		}
	}
	if merged < 10 {
		t.Errorf("%d tables were made: the test proves nothing", merged)
	}
}

// TestKilledInTheFirstTransaction guards that a log without a complete
// transaction, which Badger deletes when it opens, is not missed.
func TestKilledInTheFirstTransaction(t *testing.T) {
	cfg, s := reopened(t)
	mustPut(t, s, scopeOf("u"), memory("lost", "text"))
	torn := leftByKill(t, cfg)
	mustClose(t, s)
	log := onlyLog(t, torn)
	b := mustRead(t, log)
	if whole, err := holdsTransaction(log); !whole || err != nil {
		t.Fatalf("no transaction was found: %v", err)
	}
	at := logHeadSize
	for b[at]&inTransaction != 0 {
		at += logRecord(b[at:])
	}
	if at == logHeadSize {
		t.Fatal("the transaction is a single record")
	}
	clear(b[at:])
	write(t, log, string(b))
	s = New(torn, nil)
	if err := errors.Join(s.files.check(), s.files.writeFirstInventory()); err != nil {
		t.Fatal(err)
	}
	noted := mustRead(t, torn.Dir+"/data/open")
	s = mustOpen(t, torn)
	again := leftByKill(t, torn)
	mustClose(t, s)
	write(t, again.Dir+"/data/open", string(noted)) // killed before it was rewritten
	s = mustOpen(t, again)
	defer mustClose(t, s)
	if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil || s.Health().Damaged > 0 {
		t.Errorf("%v, %+v", err, s.Health())
	}
}
