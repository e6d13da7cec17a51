//go:build unix

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// KeepOwner is called by root before it makes files in dir. give gives those
// that files names, or all below dir if it is nil, to the owner of dir, or of
// its parent if dir is made meanwhile. Without it, a service that runs as that
// user could not open what root has made. give does nothing for other users,
// and where root is the owner.
//
// The owner may change dir at any time. So no link is followed, and a file with
// several names, which may be one of another directory, stays root's. So does
// lost+found of a volume.
func KeepOwner(dir string, files func() (paths []string)) (give func() error) {
	owner, ok := ownerOf(dir)
	if !ok {
		owner, ok = ownerOf(filepath.Dir(dir))
	}
	if os.Geteuid() != 0 || !ok || owner.Uid == 0 {
		return func() error { return nil }
	}
	return func() error {
		if err := giveTo(owner, dir, files); err != nil {
			return fmt.Errorf("give what was made in %s to user %d, its owner: %w", dir, owner.Uid, err)
		}
		return nil
	}
}

func ownerOf(path string) (*syscall.Stat_t, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return owner, ok
}

func giveTo(owner *syscall.Stat_t, dir string, files func() []string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) { // nothing was made
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if files != nil {
		var errs []error
		for _, path := range files() {
			errs = append(errs, giveFile(owner, root, filepath.Base(path)))
		}
		return errors.Join(errs...)
	}
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case path == "lost+found":
			return fs.SkipDir
		case !entry.IsDir() && !entry.Type().IsRegular():
			return nil
		}
		return giveFile(owner, root, path)
	})
}

// giveFile looks at the file that it has opened, which nobody can replace.
func giveFile(owner *syscall.Stat_t, root *os.Root, path string) error {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok || is.Uid != 0 || !info.IsDir() && (!info.Mode().IsRegular() || is.Nlink != 1) {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
