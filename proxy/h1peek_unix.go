//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import "syscall"

// ownH1Client says that a connection can be looked into without reading from it, which an h1Client needs. Elsewhere
// http.Transport speaks to plain upstreams, too.
const ownH1Client = true

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
