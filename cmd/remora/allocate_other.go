//go:build !linux

package main

import (
	"errors"
	"os"
)

// allocate makes a file whose blocks are taken, unlike those of a sparse one.
func allocate(path string, size uint64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(fill(f, size), f.Close())
}
