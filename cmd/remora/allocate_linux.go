package main

import (
	"errors"
	"os"
	"syscall"
)

// allocate makes a file whose blocks are taken, unlike those of a sparse one.
func allocate(path string, size uint64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Fallocate(int(f.Fd()), 0, 0, int64(size))
	if errors.Is(err, syscall.EOPNOTSUPP) {
		err = fill(f, size)
	}
	return errors.Join(err, f.Close())
}
