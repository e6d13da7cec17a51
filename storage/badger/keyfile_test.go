package badger

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// besideConfig returns the config of a store outside the default directory,
// which shares the account's key file.
func besideConfig(dir, name string) Config {
	c := DefaultConfig()
	c.Dir, c.KeyFile, c.NewKey = filepath.Join(dir, name), filepath.Join(dir, "config", "store.key"), NewKeyBeside
	return c
}

// inFileConfig returns the config of a store in the default directory, or with
// a key file of its own.
func inFileConfig(dir, name string) Config {
	c := besideConfig(dir, name)
	c.NewKey = NewKeyInFile
	return c
}

// TestStoresOfOneAccount guards that each store finds its own key whatever
// happens to the others', even if they began with the same one.
func TestStoresOfOneAccount(t *testing.T) {
	type made func(dir, name string) Config
	for _, test := range []struct {
		name           string
		a, b           made // when the stores are made
		laterA, laterB made // when they are opened later
		own            bool // they begin with different keys
	}{
		{"next to the key file", besideConfig, besideConfig, besideConfig, besideConfig, true},
		{"the default one and another", inFileConfig, besideConfig, inFileConfig, besideConfig, true},
		{"both made in the one file", inFileConfig, inFileConfig, inFileConfig, besideConfig, false},
		{"both made in the one file, none of them by default", inFileConfig, inFileConfig, besideConfig, besideConfig, false},
		{"one named file for both", inFileConfig, inFileConfig, inFileConfig, inFileConfig, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			var stores [2]*Store
			var checks [2]func(*testing.T, *Store)
			for i, of := range []made{test.a, test.b} {
				s := mustOpen(t, of(dir, string(rune('a'+i))))
				checks[i] = fillRotation(t, s)
				stores[i] = s
			}
			if own := stores[0].session.keys.current().id != stores[1].session.keys.current().id; own != test.own {
				t.Errorf("keys of their own: got %v, want %v", own, test.own)
			}
			for i, of := range []made{test.laterA, test.laterB} {
				mustClose(t, stores[i])
				stores[i] = mustOpen(t, of(dir, string(rune('a'+i))))
			}
			keys := map[kekID]bool{}
			for round := range 6 {
				one := round % 2
				if round == 3 {
					one = 0 // twice in a row
				}
				keys[stores[one].session.keys.current().id] = true
				done, err := stores[one].RotateKey(t.Context(), "")
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if got := kekIn(t, done.NewFile).id.String(); got != done.To {
					t.Errorf("round %d: %s holds key %s, want %s", round, done.NewFile, got, done.To)
				}
				if got := kekIn(t, done.OldFile).id.String(); got != done.From {
					t.Errorf("round %d: %s holds key %s, want %s", round, done.OldFile, got, done.From)
				}
				for i := range stores {
					mustClose(t, stores[i])
					if err := stores[i].Open(t.Context()); err != nil {
						t.Fatalf("round %d, store %d: %v", round, i, err)
					}
					checks[i](t, stores[i])
				}
			}
			left, err := os.ReadDir(filepath.Join(dir, "config"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range left {
				delete(keys, kekIn(t, filepath.Join(dir, "config", f.Name())).id)
			}
			if len(keys) > 0 {
				t.Errorf("%d keys are lost", len(keys))
			}
		})
	}
}

// TestRotatedAtOnce guards that stores which share a key file and are rotated
// at once lose no key.
func TestRotatedAtOnce(t *testing.T) {
	dir := t.TempDir()
	var stores []*Store
	var checks []func(*testing.T, *Store)
	for _, name := range []string{"a", "b", "c"} {
		s := mustOpen(t, inFileConfig(dir, name))
		checks = append(checks, fillRotation(t, s))
		stores = append(stores, s)
	}
	var all sync.WaitGroup
	for _, s := range stores {
		all.Go(func() { _, _ = s.RotateKey(t.Context(), "") }) // may be refused
	}
	all.Wait()
	for i, s := range stores {
		mustClose(t, s)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		checks[i](t, s)
	}
}

// TestRotationOverAnothersKey guards that a key file with another key than the
// one in use is not changed.
func TestRotationOverAnothersKey(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	check := fillRotation(t, s)
	text := mustRead(t, cfg.KeyFile)
	other := strings.Repeat("0a", KeySize) + "\n"
	write(t, cfg.KeyFile, other)
	if _, err := s.RotateKey(t.Context(), ""); !errors.Is(err, storage.ErrInvalid) || !strings.Contains(err.Error(), "not the one in use") {
		t.Errorf("RotateKey: got %v, want ErrInvalid", err)
	}
	if got, err := os.ReadFile(cfg.KeyFile); string(got) != other || err != nil {
		t.Errorf("the other key: got %d bytes, %v, want it unchanged", len(got), err)
	}
	write(t, cfg.KeyFile, string(text))
	if _, err := s.RotateKey(t.Context(), ""); err != nil {
		t.Error(err)
	}
	check(t, s)
}

// TestRotationOfLinkedKeyFile guards that neither a symbolic link nor the file
// that it leads to is changed.
func TestRotationOfLinkedKeyFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	cfg := testConfig(t)
	target := cfg.KeyFile + ".mounted"
	write(t, target, strings.Repeat("0a", KeySize)+"\n")
	if err := os.Symlink(target, cfg.KeyFile); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, cfg)
	before := fileSums(t, filepath.Dir(cfg.Dir))
	if _, err := s.RotateKey(t.Context(), ""); !errors.Is(err, storage.ErrInvalid) || !strings.Contains(err.Error(), "--new-key-file") {
		t.Errorf("RotateKey: got %v, want ErrInvalid and advice", err)
	}
	if to, err := os.Readlink(cfg.KeyFile); to != target {
		t.Errorf("the link: got %q, %v, want it to point to %q", to, err, target)
	}
	for path, sum := range fileSums(t, filepath.Dir(cfg.Dir)) {
		if strings.HasPrefix(path, cfg.KeyFile) && sum != before[path] {
			t.Errorf("%s was changed", path)
		}
	}
}

// TestRotationWithoutPlace guards that the old key stays in use if the new one
// cannot be put in place.
func TestRotationWithoutPlace(t *testing.T) {
	for _, beside := range []bool{false, true} {
		dir := t.TempDir()
		cfg := inFileConfig(dir, "a")
		if beside {
			cfg = besideConfig(dir, "a")
		}
		s := mustOpen(t, cfg)
		check := fillRotation(t, s)
		old := s.session.keys.current().id
		next := newKey()
		k, err := newKEK(next)
		if err != nil {
			t.Fatal(err)
		}
		// A directory is in the new key's place, so that the rename fails as it
		// does if the file is a mount.
		if err := writeKey(cfg.nextKeyFile(k.id), next); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.session.keys.wrapAlsoBy(t.Context(), k); err != nil { // which the rotation below resumes
			t.Fatal(err)
		}
		blocked := filepath.Join(cfg.keyFileOf(k.id), "x")
		if err := os.MkdirAll(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RotateKey(t.Context(), ""); err == nil {
			t.Fatal("RotateKey: got no error")
		}
		mustPut(t, s, scopeOf("meanwhile"), memory("m", "text"))
		mustClose(t, s)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, s)
		if got := s.session.keys.current().id; beside && got != old {
			t.Errorf("opened with %s, want the old key", got)
		}
		mustClose(t, s)
		if err := os.RemoveAll(cfg.keyFileOf(k.id)); err != nil {
			t.Fatal(err)
		}
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, s)
		if _, err := s.Memory(t.Context(), scopeOf("meanwhile"), "m"); err != nil {
			t.Error(err)
		}
		mustClose(t, s)
	}
}

// TestNoKeyIsMadeOnAMissingMount guards against a key that would be gone at the
// next start.
func TestNoKeyIsMadeOnAMissingMount(t *testing.T) {
	dir := t.TempDir()
	cfg := inFileConfig(dir, "a")
	for place, want := range map[NewKeyPlace]string{NewKeyOnMount: "not mounted", NewKeyNowhere: "is lost with the container"} {
		cfg.NewKey = place
		if err := New(cfg, nil).Open(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: got %v, want %q", err, want)
		}
		if there, err := exists(filepath.Dir(cfg.KeyFile)); there || err != nil {
			t.Errorf("the directory of the key file was made, %v", err)
		}
	}
	write(t, cfg.KeyFile, strings.Repeat("0a", KeySize)+"\n") // mounted
	mustClose(t, mustOpen(t, cfg))
}

// TestNoKeyIsLeftBehind guards that a store that cannot be made, which is
// retried forever, does not leave a key each time.
func TestNoKeyIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	cfg := besideConfig(dir, "a")
	write(t, filepath.Join(cfg.Dir, "VERSION"), "remora store 2\n")
	write(t, filepath.Join(cfg.Dir, "keyring", "secrets.tmp", "in-the-way"), "")
	for range 3 {
		if err := New(cfg, nil).Open(t.Context()); err == nil {
			t.Fatal("Open: got no error")
		}
	}
	if left, err := os.ReadDir(filepath.Dir(cfg.KeyFile)); len(left) > 0 {
		t.Errorf("%d keys are left, %v", len(left), err)
	}
}
