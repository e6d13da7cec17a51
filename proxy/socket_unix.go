//go:build darwin || freebsd || netbsd || openbsd || dragonfly || (linux && (race || (!amd64 && !arm64)))

package proxy

import (
	"errors"
	"syscall"
)

// recvNow, sendNow and sendPiecesNow are those of socket_linux.go, of which the race detector knows that what was written before bytes were sent is
// seen by who has read them.

func recvNow(fd uintptr, p []byte, flags int) (n int, errno syscall.Errno) {
	var err error
	if flags == 0 {
		n, err = syscall.Read(int(fd), p)
	} else {
		n, _, err = syscall.Recvfrom(int(fd), p, flags|syscall.MSG_DONTWAIT)
	}
	return n, errnoOf(err)
}

func sendNow(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), p)
	return n, errnoOf(err)
}

func sendPiecesNow(fd uintptr, pieces [][]byte) (int, syscall.Errno) { return sendNow(fd, pieces[0]) }

func errnoOf(err error) (errno syscall.Errno) {
	if err != nil && !errors.As(err, &errno) {
		return syscall.EIO
	}
	return errno
}
