//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// ownH1Client says that a connection can be looked into without reading from it, which an h1Client needs. Elsewhere
// http.Transport speaks to plain upstreams, too.
const ownH1Client = true

// ownDoor says the same of the connections of clients, which a door needs. Elsewhere net/http serves all of them.
const ownDoor = ownH1Client

// What peek finds.
const (
	peekNothing   = iota
	peekSomething // bytes, the end, or an error
)

// peek looks whether something waits on a socket. It neither waits nor reads.
func peek(fd uintptr) int {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return peekNothing
		default:
			return peekSomething
		}
	}
}

// errNothing: nothing waits on the socket.
var errNothing = errors.New("nothing to read")

// readNow reads from a socket what is there. It does not wait.
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

// peekEnd looks what waits on a socket: something says that anything does, end that it is no bytes but the end, or an error.
func peekEnd(fd uintptr) (something, end bool) {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false, false
		default:
			return true, err != nil || n <= 0
		}
	}
}
