package badger

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// A kill while Badger opens a store may fall between its deleting a log without a record and its making a new one, and one
// before may have left a table that a merge had just made. Neither is damage.
func TestKilledOpening(t *testing.T) {
	for _, inventory := range []bool{true, false} {
		for _, unnamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("inventory %v, unnamed table %v", inventory, unnamed), func(t *testing.T) {
				cfg := testConfig(t)
				s := mustOpen(t, cfg)
				mustPut(t, s, scopeOf("u"), memory("id", "text"))
				mustClose(t, s)
				s = mustOpen(t, cfg)
				to := cfg
				to.Dir = t.TempDir() + "/store"
				if err := os.CopyFS(to.Dir, os.DirFS(cfg.Dir)); err != nil { // what a kill leaves
					t.Fatal(err)
				}
				mustClose(t, s)
				if !inventory { // killed before it was written
					if err := os.Remove(to.Dir + "/data/open"); err != nil {
						t.Fatal(err)
					}
				}
				if unnamed {
					b, err := os.ReadFile(to.Dir + "/data/000001.sst")
					if err != nil {
						t.Fatal(err)
					}
					write(t, to.Dir+"/data/000002.sst", string(b))
				}
				s = New(to, nil)
				if err := s.verify(); err != nil { // the second start
					t.Fatal(err)
				}
				logs, err := filepath.Glob(to.Dir + "/data/*.mem")
				if err != nil || len(logs) != 1 {
					t.Fatalf("logs: %q, %v", logs, err)
				}
				if err := os.Remove(logs[0]); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, to) // the third
				if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil || s.Health().Damaged > 0 {
					t.Errorf("%v, %+v", err, s.Health())
				}
			})
		}
	}
}

// An erasure takes tables away without making newer ones. A kill before the inventory knows is no damage either.
func TestKilledAfterErasing(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("gone"), memory("id", "text"))
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if _, err := s.Erase(t.Context(), scopeOf("gone")); err != nil {
		t.Fatal(err)
	}
	to := cfg
	to.Dir = t.TempDir() + "/store"
	if err := os.CopyFS(to.Dir, os.DirFS(cfg.Dir)); err != nil { // what a kill leaves
		t.Fatal(err)
	}
	mustClose(t, s)
	if s = mustOpen(t, to); s.Health().Damaged > 0 {
		t.Errorf("%+v", s.Health())
	}
}

// A kill may come at any moment of a merge: what the inventory names must never look as if it were lost.
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
	path := filepath.Join(s.dataDir(), "MANIFEST")
	merged := uint64(0)
	for began := time.Now(); time.Since(began) < 20*time.Second && merged < 60 && !t.Failed(); {
		if err := s.NoteFiles(); err != nil {
			t.Fatal(err)
		}
		var logs, tables int
		for range 3 { // it is not looked at in one moment, as a killed one would be
			named, err := namedTables(path, s.session.db.Opts())
			if err != nil {
				continue // a record is just being written
			}
			for id := range named {
				merged = max(merged, id)
			}
			if logs, tables, err = s.lostFiles(named); err != nil {
				t.Fatal(err)
			}
			if logs+tables == 0 {
				break
			}
		}
		if logs+tables > 0 {
			t.Fatalf("%d tables and %d logs would be missed", tables, logs)
		}
	}
	if merged < 10 {
		t.Errorf("%d tables were made: the test shows nothing", merged)
	}
}
