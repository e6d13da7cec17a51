//go:build unix

package main

import "syscall"

// othersOut is all that a group and others may do.
const othersOut = 0o077

// privateFiles has this process make files that nobody else may read. Badger
// makes its own for everybody, as the umask allows; its directory keeps others
// out, but what is moved or copied out of it would not be. Files whose modes
// matter otherwise are given them by commands that open no store.
func privateFiles() {
	if old := syscall.Umask(othersOut); old&^othersOut != 0 {
		syscall.Umask(old | othersOut)
	}
}
