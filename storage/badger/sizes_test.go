package badger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// TestSizes guards that a store that crashed with large sizes opens with small
// ones, and the other way round.
func TestSizes(t *testing.T) {
	const large, small = 0, smallMemory - 1
	for _, tt := range []struct {
		name       string
		first      int64
		then       int64
		cut        bool // the log was read once, and truncated to its records
		writeBytes int
		writes     int
	}{
		{"less", large, small, false, 500 << 10, 12},
		{"less, read before", large, small, true, 500 << 10, 8},
		{"more", small, large, false, 100 << 10, 15},
		{"the same", small, small, false, 100 << 10, 15},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.MemoryBytes = tt.first
			s := mustOpen(t, cfg)
			text := func(i int) string { return strings.Repeat(string(rune('a'+i)), tt.writeBytes) }
			for i := range tt.writes {
				mustPut(t, s, scopeOf("u"), memory(fmt.Sprint(i), text(i)))
			}
			if err := s.UpdateInventory(); err != nil {
				t.Fatal(err)
			}
			crashed := leftByKill(t, cfg)
			if tt.cut {
				cutLogs(t, crashed.Dir)
			}
			crashed.MemoryBytes = tt.then
			for range 2 {
				s := mustOpen(t, crashed)
				if h := s.Health(); h.Damaged > 0 {
					t.Errorf("got %+v", h)
				}
				for i := range tt.writes {
					if m, err := s.Memory(t.Context(), scopeOf("u"), fmt.Sprint(i)); err != nil || m.Text != text(i) {
						t.Errorf("memory %d: %d bytes, %v", i, len(m.Text), err)
					}
				}
				if got, want := s.session.db.Opts().MemTableSize, crashed.sizes().memTable; got != want {
					t.Errorf("memory tables of %d bytes, want %d", got, want)
				}
				mustClose(t, s)
			}
		})
	}
}

// cutLogs truncates logs after their last record, as Badger does with those
// that it has read.
func cutLogs(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "data", "*.mem"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs, %v", err)
	}
	for _, path := range logs {
		if err := os.Truncate(path, logEnd(t, path)); err != nil {
			t.Fatal(err)
		}
	}
}

// logEnd returns the end of the last record of a log.
func logEnd(t *testing.T, path string) int64 {
	t.Helper()
	b := mustRead(t, path)
	at := logHeadSize
	for n := logRecord(b[at:]); n > 0; n = logRecord(b[at:]) {
		at += n
	}
	return int64(at)
}

// TestSmallSizes compares the sizes with the limits of Badger's options and of
// one transaction.
func TestSmallSizes(t *testing.T) {
	for _, size := range []sizes{smallSizes(), largeSizes()} {
		db, err := badgerdb.Open(badgerOptions(t.TempDir(), size, nil).WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		if int64(size.maxTxn) >= db.MaxBatchSize() || int64(size.maxEntries) >= db.MaxBatchCount() {
			t.Errorf("transactions of %d bytes and %d entries, Badger's limits are %d and %d", size.maxTxn, size.maxEntries, db.MaxBatchSize(), db.MaxBatchCount())
		}
		if longest := max(size.inline, size.chunk) + recordOverhead; longest > size.maxTxn || int64(longest) > size.threshold {
			t.Errorf("a value does not fit %+v", size)
		}
		if names := storage.MaxRecords * (storage.MaxID + recordOverhead); names > size.maxTxn {
			t.Errorf("the names of one call take %d bytes, the limit is %d", names, size.maxTxn)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	cfg := testConfig(t)
	cfg.MemoryBytes = smallMemory - 1
	err := mustOpen(t, cfg).Put(t.Context(), []storage.Write{{Scope: scopeOf("u"), Memories: []storage.Memory{memory("id", strings.Repeat("x", cfg.MaxWrite()))}}})
	if !errors.Is(err, storage.ErrInvalid) {
		t.Errorf("a write beyond MaxWrite: %v", err)
	}
}

// TestSmallTablesAndSmallRecords guards that a log of deletions, which needs
// more room in a table than in the log, does not make Badger end the process.
func TestSmallTablesAndSmallRecords(t *testing.T) {
	const calls, each = 90, 500
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	key := func(i, j int) string { return fmt.Sprintf("%d-%d", i, j) }
	for i := range calls {
		records := make([]storage.Record, each)
		for j := range records {
			records[j] = storage.Record{Bucket: storage.BucketAudit, Scope: scopeOf("u"), Key: key(i, j), Value: []byte("x")}
		}
		if err := s.PutRecords(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	cfg.MemoryBytes = smallMemory - 1
	limit := cfg.sizes().memTable
	cfg.MemoryBytes = 0
	s = mustOpen(t, cfg)
	longest := func() (size int64) {
		logs, err := filepath.Glob(filepath.Join(cfg.Dir, "data", "*.mem"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range logs {
			size = max(size, logEnd(t, path))
		}
		return size
	}
	for i := 0; longest() < limit-36_000; i++ { // one more call would exceed it
		if i == calls {
			t.Fatalf("a log of %d bytes proves nothing", longest())
		}
		refs := make([]storage.RecordRef, each)
		for j := range refs {
			refs[j] = storage.RecordRef{Bucket: storage.BucketAudit, Scope: scopeOf("u"), Key: key(i, j)}
		}
		if err := s.DeleteRecords(t.Context(), refs); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.UpdateInventory(); err != nil {
		t.Fatal(err)
	}
	crashed := leftByKill(t, cfg)
	cutLogs(t, crashed.Dir)
	crashed.MemoryBytes = smallMemory - 1
	mustClose(t, mustOpen(t, crashed))
}
