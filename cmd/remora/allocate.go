package main

import (
	"errors"
	"os"
)

// allocate makes a file whose blocks are allocated, unlike those of a sparse
// one.
func allocate(path string, size uint64) error {
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
