//go:build unix

package main

import (
	"io/fs"
	"math"
	"syscall"
)

// othersOut masks all rights of group and others.
const othersOut = 0o077

// privateFiles makes the files of this process private to its user. Badger
// creates its own for everybody, as far as the umask allows. Its directory
// keeps others out, but what is moved or copied out of it would not be
// protected. Files whose modes must differ are created by commands that open no
// store.
func privateFiles() {
	if old := syscall.Umask(othersOut); old&^othersOut != 0 {
		syscall.Umask(old | othersOut)
	}
}

// maxFiles returns how many files this process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	if limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// diskBytes returns what a file takes on the disk.
func diskBytes(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * 512
	}
	return info.Size()
}
