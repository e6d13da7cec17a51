// Package machine asks the operating system for what differs between systems:
// space on a disk, how long a directory lasts, the modes of files, a place for
// temporary ones, and how many files may be open.
package machine

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// roomBytes is what Badger may write at once into files that it has mapped: a
// log and a table. If the system does not grant it that much, Badger dies by a
// signal while writing.
const roomBytes = 24 << 20

// Names of temporary files of TakeRoom, one for each process that calls it.
const (
	KeeperRoom = "room"
	ParentRoom = "room.parent"
)

// ErrNoRoom is the error of a file system that reports free space but grants
// none, because a quota is used up.
var ErrNoRoom = errors.New("no space: the quota is used up")

// TakeRoom tests whether as much can be written in dir as the measured free
// space promises. ErrNoRoom is its only error; whatever else prevents writing
// there is reported better by opening the store.
func TakeRoom(dir, name string, measure func() (uint64, error), take func(path string, size uint64) error) error {
	if free, err := measure(); err != nil || free < 2*roomBytes { // no test is needed then
		return nil
	}
	path := filepath.Join(dir, name)
	err := take(path, roomBytes)
	_ = os.Remove(path)
	if errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.ENOSPC) {
		return ErrNoRoom
	}
	return nil
}

// Allocate makes a file whose blocks are allocated, unlike those of a sparse
// one.
func Allocate(path string, size uint64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = takeBlocks(f, size); errors.Is(err, errors.ErrUnsupported) {
		err = fill(f, size)
	}
	return errors.Join(err, f.Close())
}

// fill writes zeros.
func fill(f *os.File, size uint64) error {
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; {
		n := min(left, uint64(len(zeros)))
		if _, err := f.Write(zeros[:n]); err != nil {
			return err
		}
		left -= n
	}
	return f.Sync()
}
