package badger

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// testConfig returns the config of a new store with a key file next to its
// directory.
func testConfig(t testing.TB) Config {
	cfg := DefaultConfig()
	dir := t.TempDir()
	cfg.Dir = filepath.Join(dir, "store")
	cfg.KeyFile = filepath.Join(dir, "secrets", "key")
	return cfg
}

func mustOpen(t testing.TB, cfg Config) *Store {
	t.Helper()
	s := New(cfg, slog.New(slog.DiscardHandler))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, s) })
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// leftByKill returns a copy of an open store, as a kill at this moment would
// leave it.
func leftByKill(t *testing.T, cfg Config) Config {
	t.Helper()
	from := cfg.Dir
	cfg.Dir = filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(cfg.Dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// onlyLog returns the path of the only log of a store.
func onlyLog(t *testing.T, cfg Config) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(cfg.Dir, "data", "*.mem"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs: %q, %v", logs, err)
	}
	return logs[0]
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestContractInLittleMemory(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Opened {
		cfg := testConfig(t)
		cfg.MemoryBytes = smallMemory - 1
		return opened(t, cfg)
	})
}

func TestContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Opened { return opened(t, testConfig(t)) })
}

func opened(t *testing.T, cfg Config) storagetest.Opened {
	s := mustOpen(t, cfg)
	return storagetest.Opened{
		Store: s, Local: s, Close: s.Close, MaxWrite: cfg.MaxWrite(),
		Reopen: func(t *testing.T) storagetest.Opened {
			mustClose(t, s)
			return opened(t, cfg)
		},
	}
}

func scopeOf(user string) storage.Scope {
	return storage.Scope{Tenant: "tenant-name", App: "app-name", Project: "project-name", User: user}
}

func memory(id, text string) storage.Memory {
	return storage.Memory{ID: id, Kind: storage.KindEpisode, Text: text, EventTime: 1_700_000_000_000}
}

func mustPut(t testing.TB, s *Store, scope storage.Scope, memories ...storage.Memory) {
	t.Helper()
	if err := s.Put(t.Context(), []storage.Write{{Scope: scope, Memories: memories}}); err != nil {
		t.Fatal(err)
	}
}
