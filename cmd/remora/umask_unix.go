//go:build unix

package main

import "syscall"

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
