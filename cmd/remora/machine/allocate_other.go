//go:build !linux

package machine

import (
	"errors"
	"os"
)

func takeBlocks(*os.File, uint64) error { return errors.ErrUnsupported }
