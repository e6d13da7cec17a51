//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
)

// TestCheckTellsOfDamage: whoever opens a store first meets what a damage took, and mends the files. If that is a check, nobody
// after it could tell.
func TestCheckTellsOfDamage(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string // of the error; "" = none
	}{
		"whole": {func(string) error { return nil }, ""},
		"a user's key is gone": {func(dir string) error {
			keys, err := filepath.Glob(filepath.Join(dir, "keyring", "scopes", "*", "*"))
			if err != nil || len(keys) != 1 {
				t.Fatalf("keys: %v, %v", keys, err)
			}
			return os.Remove(keys[0])
		}, "missing: 1 scopes"},
		"a log is gone": {func(dir string) error {
			logs, err := filepath.Glob(filepath.Join(dir, "data", "*.mem"))
			if err != nil || len(logs) != 1 {
				t.Fatalf("logs: %v, %v", logs, err)
			}
			return os.Remove(logs[0])
		}, "damage was met"},
		"the version is gone": {func(dir string) error { return os.Remove(filepath.Join(dir, "VERSION")) }, "VERSION is missing"},
	} {
		cfg := demoConfig(rigDir(t), "http://127.0.0.1:1")
		cfg.store = defaultStoreConfig()
		cfg.store.isolation = isolationInline
		s := badger.New(cfg.storage, nil)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), []storage.Write{{Scope: damageScope("u"), Memories: []storage.Memory{{ID: "a", Text: "first"}}}}); err != nil {
			t.Fatal(err)
		}
		if err := s.NoteFiles(); err != nil {
			t.Fatal(err)
		}
		dir := rigDir(t) // what a kill leaves
		if err := os.CopyFS(dir, os.DirFS(cfg.storage.Dir)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		cfg.storage.Dir = dir
		if err := c.spoil(dir); err != nil {
			t.Fatal(err)
		}
		told, err := storeState(t.Context(), cfg, true)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %q, %v, want %q", name, told, err, c.want)
		}
	}
}
