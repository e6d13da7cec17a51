//go:build linux || darwin || freebsd

package badger

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockDir takes the lock that Badger takes; free is false while another process
// has it.
func lockDir(dir string) (unlock func(), free bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, false, f.Close()
	}
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, true, nil
}

// freeBytes returns what an unprivileged process may still write.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(max(st.Bavail, 0)) * uint64(st.Bsize), nil
}
