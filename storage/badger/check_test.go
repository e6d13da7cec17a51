package badger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// killed returns a store as a kill leaves it, with several logs and tables, and
// a backup of it with its keys.
func killed(t *testing.T) (cfg Config, backup []byte) {
	t.Helper()
	cfg = testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	backup = mustBackup(t, s)
	for i := range 4 { // opening makes a log, closing a table
		mustPut(t, s, scopeOf("u"), memory(fmt.Sprint("more", i), "text"))
		mustClose(t, s)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.UpdateInventory(); err != nil {
		t.Fatal(err)
	}
	to := leftByKill(t, cfg)
	return to, backup
}

// TestRestoreAfterKill guards that the inventory of a store does not apply to
// the store that replaces it.
func TestRestoreAfterKill(t *testing.T) {
	t.Run("restored", func(t *testing.T) {
		cfg, backup := killed(t)
		if err := os.Rename(filepath.Join(cfg.Dir, "data"), filepath.Join(cfg.Dir, "away")); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), cfg, bytes.NewReader(backup)); err != nil {
			t.Fatal(err)
		}
		s := New(cfg, nil)
		if err := s.Open(t.Context()); err != nil {
			t.Fatalf("Open: %v, %+v", err, s.Health())
		}
		defer mustClose(t, s)
		if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil || s.Health().Damaged != 0 {
			t.Errorf("got %v, %+v", err, s.Health())
		}
	})
	t.Run("set aside", func(t *testing.T) {
		cfg, _ := killed(t)
		s := New(cfg, nil)
		if _, err := s.SetAside(now()); err != nil {
			t.Fatal(err)
		}
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer mustClose(t, s)
		if n := s.Health().Damaged; n != 0 {
			t.Errorf("a new store counts %d damaged", n)
		}
	})
}

// TestDamagedInventory guards that a damaged inventory does not make a store
// count as damaged.
func TestDamagedInventory(t *testing.T) {
	cfg, _ := killed(t)
	path := filepath.Join(cfg.Dir, "data", inventoryName)
	whole := mustRead(t, path)
	s := New(cfg, nil)
	for at := range whole {
		altered := bytes.Clone(whole)
		altered[at] ^= 8 // makes another digit
		write(t, path, string(altered))
		if err := s.files.check(); err != nil || s.Health().Damaged != 0 {
			t.Fatalf("byte %d: %v, %+v\n%s", at, err, s.Health(), altered)
		}
	}
}

// TestRefusalsAreNoDamage guards that errors of the system, locks and keys do
// not count as damage, although Badger keeps only the text of an error.
func TestRefusalsAreNoDamage(t *testing.T) {
	cfg := testConfig(t)
	cfg.Dir = filepath.Join(filepath.Dir(cfg.Dir), "once damaged")
	s := New(cfg, nil)
	for _, test := range []struct {
		err    error
		damage bool
	}{
		{errors.New("while opening fid: 3 err: open 00003.mem: too many open files"), false},
		{errors.New("Opening file: 1 err: cannot allocate memory\nwhile mmapping 1"), false},
		{errors.New("Opening file: 1 err: open 1: permission denied"), false},
		{errors.New("newMemTable err: open 1: read-only file system"), false},
		{errors.New("newMemTable err: ftruncate: disk quota exceeded"), false},
		{damagedFile("MANIFEST", "cannot be read: read MANIFEST: input/output error"), false},
		{fmt.Errorf("read: %w", syscall.EIO), false},
		{errors.New("Cannot acquire directory lock on \"x\". err: resource temporarily unavailable"), false},
		{refuse("wrong key of %s", cfg.Dir), false},
		{errors.New("Opening table: 1 err: failed to read index."), true},
		{damagedFile("MANIFEST", "holds zeros"), true},
		{&openError{dataDamaged: true, reason: "Badger panicked"}, true},
	} {
		known, ok := errors.AsType[*openError](explainData(s.dir, test.err))
		if !ok || known.dataDamaged != test.damage {
			t.Errorf("%v: damage %t (%v)", test.err, known.dataDamaged, known)
		}
	}
}

// TestDamagedOpensInARow guards that attempts which failed for another reason
// reset the count of damaged ones.
func TestDamagedOpensInARow(t *testing.T) {
	cfg := testConfig(t)
	mustClose(t, mustOpen(t, cfg))
	s := New(cfg, nil)
	s.cfg.MinFreeBytes = 1 << 62
	for range 5 {
		_ = s.Open(t.Context())
	}
	s.cfg.MinFreeBytes = 0
	write(t, filepath.Join(s.dir.data(), "MANIFEST"), "not a manifest")
	for n := uint64(1); n < 3; n++ {
		if err := s.Open(t.Context()); err == nil || s.Health().DamagedOpens != n || s.Health().FailedOpens != 5+n {
			t.Errorf("got %v, %+v", err, s.Health())
		}
	}
}

// TestImportDuringRotation guards against importing a key behind a rotation,
// which neither key would open in the end.
func TestImportDuringRotation(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	exported := mustExport(t, cfg)
	if err := os.Remove(s.session.keys.scopePath(s.session.keys.scope(scopeOf("u")))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RotateKey(t.Context(), filepath.Join(t.TempDir(), "next")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s) // otherwise that is the reason of the refusal
	if _, err := ImportKeyring(cfg, bytes.NewReader(exported)); err == nil || !strings.Contains(err.Error(), "rotation") {
		t.Errorf("ImportKeyring: %v", err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); !errors.Is(err, errNoKey) {
		t.Errorf("got %v, want %v", err, errNoKey)
	}
}
