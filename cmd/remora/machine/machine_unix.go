//go:build unix

package machine

import (
	"io/fs"
	"math"
	"syscall"
)

// OthersOut masks all rights of group and others.
const OthersOut = 0o077

// PrivateFiles makes the files of this process private to its user. Badger
// creates its own for everybody, as far as the umask allows. Its directory
// keeps others out, but what is moved or copied out of it would not be
// protected. Files whose modes must differ are created by commands that open no
// store.
func PrivateFiles() {
	if old := syscall.Umask(OthersOut); old&^OthersOut != 0 {
		syscall.Umask(old | OthersOut)
	}
}

// MaxFiles returns how many files this process may have open.
func MaxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	if limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// DiskBytes returns what a file takes on the disk.
func DiskBytes(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * 512
	}
	return info.Size()
}
