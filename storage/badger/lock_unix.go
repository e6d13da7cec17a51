//go:build unix

package badger

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockDir takes the lock that Badger takes; free is false while somebody has it.
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
