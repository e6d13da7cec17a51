//go:build !linux

package main

import (
	"errors"
	"os"
)

func takeBlocks(*os.File, uint64) error { return errors.ErrUnsupported }
