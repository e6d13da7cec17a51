//go:build darwin || freebsd || netbsd || openbsd || dragonfly || (linux && !amd64 && !arm64)

package proxy

import (
	"errors"
	"syscall"
)

func recvNow(fd uintptr, p []byte, flags int) (int, syscall.Errno) {
	n, _, err := syscall.Recvfrom(int(fd), p, flags|syscall.MSG_DONTWAIT)
	return n, errnoOf(err)
}

func sendNow(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), p)
	return n, errnoOf(err)
}

func errnoOf(err error) (errno syscall.Errno) {
	if err != nil && !errors.As(err, &errno) {
		return syscall.EIO
	}
	return errno
}
