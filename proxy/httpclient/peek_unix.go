//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package httpclient

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// ownClient reports whether this system can inspect a connection without
// reading from it, which client needs. On other systems http.Transport speaks
// to plain upstreams too.
const ownClient = true

// Results of peek.
const (
	peekNothing   = iota
	peekSomething // bytes
	peekEnd       // the end of the stream, or an error
)

// peek reports what a non-blocking socket has to read, without waiting or
// reading.
func peek(fd uintptr) int {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return peekNothing
		case err != nil || n <= 0:
			return peekEnd
		default:
			return peekSomething
		}
	}
}

// errNothing is returned by readNow if the socket is empty.
var errNothing = errors.New("nothing to read")

// readNow reads what a non-blocking socket has, without waiting.
func readNow(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, errNothing
		case err != nil:
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
