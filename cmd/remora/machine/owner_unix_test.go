//go:build unix

package machine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

const (
	someUser  = 65534
	someGroup = 65533
)

// A user whose directory root works in gets what root has made there, and
// nothing of another directory, whatever the user has put there.
func TestKeepOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("only root makes files for others")
		}
		t.Skip("only root makes files for others")
	}
	other, dir := t.TempDir(), filepath.Join(t.TempDir(), "data")
	write := func(path string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shadow, away := write(filepath.Join(other, "shadow")), filepath.Dir(write(filepath.Join(other, "sub", "secret")))
	if err := os.Chown(filepath.Dir(dir), someUser, someGroup); err != nil {
		t.Fatal(err)
	}
	give := KeepOwner(dir, nil)
	if err := give(); err != nil {
		t.Errorf("where nothing was made: %v", err)
	}
	for _, name := range []string{"data/one", "VERSION", "lost+found/lost"} {
		write(filepath.Join(dir, name))
	}
	for _, err := range []error{
		os.Symlink(shadow, filepath.Join(dir, "link")), os.Symlink(away, filepath.Join(dir, "directory")),
		os.Link(shadow, filepath.Join(dir, "hard")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := give(); err != nil {
		t.Fatal(err)
	}
	if got, want := ownedBy(t, dir, someUser), []string{".", "VERSION", "data", "data/one"}; !slices.Equal(got, want) {
		t.Errorf("the owner has %q, want %q", got, want)
	}
	if got := ownedBy(t, other, someUser); len(got) > 0 {
		t.Errorf("the owner has %q of another directory", got)
	}
	for _, path := range []string{"key", "other"} {
		write(filepath.Join(dir, path))
	}
	if err := KeepOwner(dir, func() []string { return []string{filepath.Join(dir, "key"), filepath.Join(dir, "hard")} })(); err != nil {
		t.Fatal(err)
	}
	if got, want := ownedBy(t, dir, someUser), []string{".", "VERSION", "data", "data/one", "key"}; !slices.Equal(got, want) {
		t.Errorf("the owner has %q, want %q", got, want)
	}
}

// ownedBy returns the files below dir that a user has.
func ownedBy(t *testing.T, dir string, user uint32) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Sys().(*syscall.Stat_t).Uid == user {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
