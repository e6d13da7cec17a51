package badger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

const rotationScopes = 4

// fillRotation writes something to some scopes, and returns a check that all of
// it is there and no name has changed.
func fillRotation(t *testing.T, s *Store) func(t *testing.T, s *Store) {
	t.Helper()
	for i := range rotationScopes {
		mustPut(t, s, scopeOf(fmt.Sprint(i)), memory("m", fmt.Sprint("text ", i)))
	}
	secret, err := s.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, s *Store) {
		t.Helper()
		for i := range rotationScopes {
			if m, err := s.Memory(t.Context(), scopeOf(fmt.Sprint(i)), "m"); err != nil || m.Text != fmt.Sprint("text ", i) {
				t.Errorf("scope %d: got %q, %v", i, m.Text, err)
			}
		}
		if got, err := s.InstallSecret(t.Context()); err != nil || !bytes.Equal(got, secret) {
			t.Errorf("InstallSecret: changed, %v", err)
		}
	}
}

func kekIn(t *testing.T, path string) *kek {
	t.Helper()
	k, err := readKEK(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// wrappedBy counts the files of a keyring that each key opens.
func wrappedBy(t *testing.T, k *keyring) map[kekID]int {
	t.Helper()
	n := map[kekID]int{}
	count := func(name, path string) {
		content := mustRead(t, path)
		all, err := parseWrappings(name, content)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			n[w.by]++
		}
	}
	count("secrets", k.secretsPath())
	if err := k.each(func(h hash16) error { count(scopeFileName(h), k.scopePath(h)); return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRotateKey(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	check := fillRotation(t, s)
	old := kekIn(t, cfg.KeyFile)
	oldText := mustRead(t, cfg.KeyFile)
	done, err := s.RotateKey(t.Context(), "")
	next := kekIn(t, cfg.KeyFile)
	kept := cfg.keyFileOf(old.id)
	want := storage.KeyRotation{From: old.id.String(), To: next.id.String(), Keys: rotationScopes, NewFile: cfg.KeyFile, OldFile: kept}
	if err != nil || done != want {
		t.Errorf("RotateKey: got %+v, %v, want %+v", done, err, want)
	}
	if next.id == old.id {
		t.Error("the key is the same")
	}
	check(t, s) // while the store is open
	mustPut(t, s, scopeOf("later"), memory("m", "text"))
	if got := wrappedBy(t, s.session.keys); len(got) != 1 || got[next.id] != rotationScopes+2 {
		t.Errorf("wrapped by: got %v, want all by %v", got, next.id)
	}
	overwritten := s.session.keys.rotatingPath() + ".done"
	for _, left := range []string{cfg.nextKeyFile(next.id), s.session.keys.rotatingPath(), overwritten} {
		if there, err := exists(left); there || err != nil {
			t.Errorf("%s was left behind, %v", left, err)
		}
	}
	mustClose(t, s)
	write(t, overwritten, strings.Repeat("\x00", 100)) // killed while it was overwritten
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, s)
	if there, err := exists(overwritten); there || err != nil {
		t.Errorf("%s was left behind, %v", overwritten, err)
	}
	mustClose(t, s)
	if got := kekIn(t, kept); got.id != old.id {
		t.Errorf("the old key is not kept in %s", kept)
	}
	// The old key opens nothing, and the store finds its own by the id.
	write(t, cfg.KeyFile, string(oldText))
	if err := s.Open(t.Context()); err != nil {
		t.Error(err)
	}
	check(t, s)
	mustClose(t, s)
	if err := os.Remove(cfg.keyFileOf(next.id)); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err == nil {
		t.Error("the old key still opens the store")
	}
}

// TestRotationCutShort guards that after a failure of any write of a rotation
// the configured key opens everything, and that a second attempt completes it.
func TestRotationCutShort(t *testing.T) {
	fault := errors.New("injected failure")
	for _, persisted := range []bool{false, true} {
		for n := 0; ; n++ {
			cfg := testConfig(t)
			s := mustOpen(t, cfg)
			check := fillRotation(t, s)
			writes := 0
			s.session.keys.write = func(path string, content []byte) error {
				if writes++; writes == n+1 {
					if persisted {
						if err := writeDurably(path, content); err != nil {
							return err
						}
					}
					return fault
				}
				return writeDurably(path, content)
			}
			_, err := s.RotateKey(t.Context(), "")
			if err == nil {
				if want := 1 + 2*(rotationScopes+1); writes != want {
					t.Errorf("a rotation made %d writes, want %d: what else does it write?", writes, want)
				}
				break
			}
			if !errors.Is(err, fault) {
				t.Fatal(err)
			}
			s.session.keys.write = writeDurably
			mustPut(t, s, scopeOf("meanwhile"), memory("m", "text")) // in the same process
			mustClose(t, s)
			if err := s.Open(t.Context()); err != nil {
				t.Fatalf("after write %d: %v", n, err)
			}
			check(t, s)
			mustPut(t, s, scopeOf("after"), memory("m", "text"))
			if _, err := s.RotateKey(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			if err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			check(t, s)
			for _, u := range []string{"meanwhile", "after"} {
				if _, err := s.Memory(t.Context(), scopeOf(u), "m"); err != nil {
					t.Errorf("after write %d: scope %s: %v", n, u, err)
				}
			}
			if got := wrappedBy(t, s.session.keys); len(got) != 1 {
				t.Errorf("after write %d: wrapped by %v, want one key", n, got)
			}
			mustClose(t, s)
		}
	}
}

// TestRotateToConfiguredKey guards that both keys open everything, also new
// scopes, until a store whose key is not in a file is opened with the new one.
func TestRotateToConfiguredKey(t *testing.T) {
	cfg := testConfig(t)
	cfg.Key, cfg.KeyFile = bytes.Repeat([]byte{1}, KeySize), ""
	s := mustOpen(t, cfg)
	check := fillRotation(t, s)
	if _, err := s.RotateKey(t.Context(), ""); !errors.Is(err, storage.ErrInvalid) {
		t.Errorf("RotateKey without a new file: got %v, want ErrInvalid", err)
	}
	path := filepath.Join(filepath.Dir(cfg.Dir), "new")
	done, err := s.RotateKey(t.Context(), path)
	if err != nil || !done.Pending || done.Keys != rotationScopes {
		t.Errorf("RotateKey: got %+v, %v, want it pending", done, err)
	}
	text := mustRead(t, path)
	newKey, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, scopeOf("meanwhile"), memory("m", "text"))
	mustClose(t, s)

	if err := s.Open(t.Context()); err != nil { // again with the old one
		t.Fatal(err)
	}
	check(t, s)
	mustPut(t, s, scopeOf("restarted"), memory("m", "text"))
	mustClose(t, s)

	with := cfg
	with.Key = newKey
	s = mustOpen(t, with)
	check(t, s)
	for _, u := range []string{"meanwhile", "restarted"} {
		if _, err := s.Memory(t.Context(), scopeOf(u), "m"); err != nil {
			t.Errorf("scope %s: %v", u, err)
		}
	}
	if got := wrappedBy(t, s.session.keys); len(got) != 1 {
		t.Errorf("wrapped by: got %v, want one key", got)
	}
	mustClose(t, s)
	if err := New(cfg, nil).Open(t.Context()); err == nil {
		t.Error("the old key still opens the store")
	}
}

// rotateUntilKilled is the process of TestKilledRotating.
func rotateUntilKilled(dir string) error {
	s := New(crashConfig(dir), nil)
	if err := s.Open(contextOfProcess()); err != nil {
		return err
	}
	fmt.Println("open")
	for {
		if _, err := s.RotateKey(contextOfProcess(), ""); err != nil {
			return err
		}
	}
}

// TestKilledRotating guards that after a kill -9 at any moment of a rotation
// the configured key opens everything.
func TestKilledRotating(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes")
	}
	dir := t.TempDir()
	s := mustOpen(t, crashConfig(dir))
	check := fillRotation(t, s)
	mustClose(t, s)
	for round := range 15 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir, crashRotates+"=1")
		killAfter(t, cmd, "open", round)
		s := mustOpen(t, crashConfig(dir))
		check(t, s)
		mustClose(t, s)
	}
}
