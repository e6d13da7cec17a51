package machine

import (
	"os"
	"syscall"
)

func takeBlocks(f *os.File, size uint64) error {
	return syscall.Fallocate(int(f.Fd()), 0, 0, int64(size))
}
