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

// TestDataMissing guards that a store with keys and without data reports the
// loss at every start until the data are back.
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
				t.Errorf("a store that never had a scope: got %v, %q, want nothing missing", err, s.Health().Missing)
			}
			mustPut(t, s, scopeOf("u"), memory("id", "text"))
			backup := mustBackup(t, s)
			mustClose(t, s)
			if got := ListSetAside(cfg.Dir); len(got) > 0 {
				t.Fatalf("set aside: got %q, want none", got)
			}
			if err := lose(s.dir.data()); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time there are files
				s = mustOpen(t, cfg)
				mustPut(t, s, scopeOf("u"), memory("other", "text"))
				mustClose(t, s)
				if got := ListSetAside(cfg.Dir); len(got) != 1 || !IsMissingMark(got[0]) {
					t.Fatalf("set aside: got %q, want a mark", got)
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
				t.Errorf("restored: got %q, %q, want nothing missing", got, s.Health().Missing)
			}
			if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDataSetAsideIsNotMissing guards that data which were set aside are not
// reported as missing.
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
		t.Errorf("set aside: got %q, want %q alone", got, to)
	}
}

// TestRestoreInterrupted guards that no empty store takes the place of an
// interrupted restore, which can be run again.
func TestRestoreInterrupted(t *testing.T) {
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
				t.Errorf("Open: got %v, want a refusal", err)
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

// TestImportWhileOpen guards that an import is refused while a store is open,
// which would keep its cached keys.
func TestImportWhileOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no lock to test")
	}
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	keyring := mustExport(t, cfg)
	before := fileSums(t, s.dir.keyring())
	if _, err := ImportKeyring(cfg, bytes.NewReader(keyring)); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("ImportKeyring: got %v, want a refusal", err)
	}
	if after := fileSums(t, s.dir.keyring()); len(after) != len(before) {
		t.Error("the keyring was changed")
	}
	mustClose(t, s)
	mustImport(t, cfg, keyring)
	if err := s.Open(t.Context()); err != nil { // the lock is released again
		t.Error(err)
	}
}
