//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package httpclient

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// ownH1Client reports whether this system can look into a connection without
// reading from it, which h1Client needs. On other systems http.Transport speaks
// to plain upstreams as well.
const ownH1Client = true

// Results of peek.
const (
	peekNothing   = iota
	peekSomething // bytes
	peekEnd       // the end of the stream, or an error
)

// peek reports what a non-blocking socket has to read. It neither waits nor
// reads.
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

// errNothing is returned by readNow when the socket is empty.
var errNothing = errors.New("nothing to read")

// readNow reads what a non-blocking socket has. It does not wait.
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
