//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxFiles returns how many files this process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
