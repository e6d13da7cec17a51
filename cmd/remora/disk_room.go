package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// roomBytes is what Badger may write at once into files that it has mapped, a
// log and a table. Where the system does not let it have so much, it ends by a
// signal in the midst of that.
const roomBytes = 24 << 20

// Files that are made for a moment by takeRoom, one for each process that calls
// it.
const (
	keeperRoom = "room"
	parentRoom = "room.parent"
)

// errNoRoom is a file system that says of itself that it has space and yet
// gives none: a quota is used up.
var errNoRoom = errors.New("no space: the quota is used up")

// takeRoom tries whether so much can be written in dir as the measured free
// space promises. errNoRoom is the only error: what else stands in the way of
// writing there, opening the store tells better.
func takeRoom(dir, name string, measure func() (uint64, error), take func(path string, size uint64) error) error {
	if free, err := measure(); err != nil || free < 2*roomBytes { // that is noticed without a trial
		return nil
	}
	path := filepath.Join(dir, name)
	err := take(path, roomBytes)
	_ = os.Remove(path)
	if errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.ENOSPC) {
		return errNoRoom
	}
	return nil
}
