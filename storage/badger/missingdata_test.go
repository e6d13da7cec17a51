package badger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// TestDataMissing: a store that has keys and lost its data says so, at every
// start, until they are back.
func TestDataMissing(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"the directory": os.RemoveAll,
		"what is in it": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			s := mustOpen(t, cfg)
			mustClose(t, s)
			if err := os.RemoveAll(s.dir.data()); err != nil {
				t.Fatal(err)
			}
			if err := s.Open(t.Context()); err != nil || s.Health().Missing != "" {
				t.Errorf("a store that never had a scope: got %v, %q, want nothing missed", err, s.Health().Missing)
			}
			mustPut(t, s, scopeOf("u"), memory("id", "text"))
			backup := mustBackup(t, s)
			mustClose(t, s)
			if got := ListSetAside(cfg.Dir); len(got) > 0 {
				t.Fatalf("aside: got %q, want none", got)
			}
			if err := lose(s.dir.data()); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time there are files
				s = mustOpen(t, cfg)
				mustPut(t, s, scopeOf("u"), memory("other", "text"))
				mustClose(t, s)
				if got := ListSetAside(cfg.Dir); len(got) != 1 || !IsMissingMark(got[0]) {
					t.Fatalf("aside: got %q, want a mark", got)
				}
			}
			if err := os.RemoveAll(s.dir.data()); err != nil {
				t.Fatal(err)
			}
			if _, err := Restore(t.Context(), cfg, bytes.NewReader(backup)); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, cfg)
			if got := ListSetAside(cfg.Dir); len(got) > 0 || s.Health().Missing != "" {
				t.Errorf("restored: got %q, %q, want nothing missed", got, s.Health().Missing)
			}
			if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDataSetAsideIsNotMissing: what was set aside is told of as that.
func TestDataSetAsideIsNotMissing(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	mustClose(t, s)
	to, err := s.SetAside(storage.Time(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ListSetAside(cfg.Dir); len(got) != 1 || got[0] != to || s.Health().Missing != "" {
		t.Errorf("aside: got %q, want %q alone", got, to)
	}
}

// TestRestoreCutShort: wherever a restore is killed no empty store takes its
// place, and it can be run again.
func TestRestoreCutShort(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	backup, keyring := mustBackup(t, s), mustExport(t, cfg)
	for _, version := range []bool{false, true} {
		to := elsewhere(t, cfg)
		mustImport(t, to, keyring)
		write(t, filepath.Join(to.Dir, "data.restoring", "MANIFEST"), "cut")
		if version {
			if err := directory(to.Dir).writeVersion(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			err := New(to, nil).Open(t.Context())
			if err == nil || !strings.Contains(err.Error(), "restore was interrupted") {
				t.Errorf("Open: got %v, want it refused", err)
			}
		}
		if _, err := Restore(t.Context(), to, bytes.NewReader(backup)); err != nil {
			t.Fatal(err)
		}
		restored := mustOpen(t, to)
		if _, err := restored.Memory(t.Context(), scopeOf("u"), "id"); err != nil {
			t.Error(err)
		}
	}
}

// TestImportBesideARunningStore: what is open goes on with the keys in its
// memory.
func TestImportBesideARunningStore(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no lock to look at")
	}
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	keyring := mustExport(t, cfg)
	before := fileSums(t, s.dir.keyring())
	if _, err := ImportKeyring(cfg, bytes.NewReader(keyring)); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("ImportKeyring: got %v, want it refused", err)
	}
	if after := fileSums(t, s.dir.keyring()); len(after) != len(before) {
		t.Error("the keyring was touched")
	}
	mustClose(t, s)
	mustImport(t, cfg, keyring)
	if err := s.Open(t.Context()); err != nil { // and the lock is free again
		t.Error(err)
	}
}
