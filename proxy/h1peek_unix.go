//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import (
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
	peekSomething // bytes
	peekEnd       // the end, or an error
)

// peek looks whether something waits on a socket. It neither waits nor reads.
func peek(fd uintptr) int {
	var one [1]byte
	for {
		n, err := recvNow(fd, one[:], syscall.MSG_PEEK)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return peekNothing
		case err != 0 || n <= 0:
			return peekEnd
		default:
			return peekSomething
		}
	}
}

// readNow reads from a socket what is there. It does not wait.
func readNow(fd uintptr, p []byte) (int, error) {
	for {
		n, err := recvNow(fd, p, 0)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, errNothing
		case err != 0:
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("recv", err)}
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// quickWriter writes to a socket: what it takes at once without a word to the scheduler (see sendNow). It is used by one goroutine.
type quickWriter struct {
	raw  syscall.RawConn
	put  func(fd uintptr) bool
	left []byte
	err  error

	pour   func(fd uintptr)
	pieces net.Buffers // what pour is to send, or has left
}

func newQuickWriter(raw syscall.RawConn) *quickWriter {
	q := &quickWriter{raw: raw}
	q.pour = func(fd uintptr) {
		for {
			for len(q.pieces) > 0 && len(q.pieces[0]) == 0 {
				q.pieces = q.pieces[1:]
			}
			if len(q.pieces) == 0 {
				return
			}
			n, err := sendPiecesNow(fd, q.pieces)
			if n <= 0 && err != syscall.EINTR {
				return
			}
			for n > 0 {
				take := min(n, len(q.pieces[0]))
				if q.pieces[0] = q.pieces[0][take:]; len(q.pieces[0]) == 0 {
					q.pieces = q.pieces[1:]
				}
				n -= take
			}
		}
	}
	q.put = func(fd uintptr) bool {
		for len(q.left) > 0 {
			n, err := sendNow(fd, q.left)
			switch {
			case err == syscall.EINTR:
			case err == syscall.EAGAIN:
				return false
			case err != 0:
				q.err = &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("send", err)}
				return true
			default:
				q.left = q.left[n:]
			}
		}
		return true
	}
	return q
}

// take writes what the socket takes of pieces at once, and leaves the rest. An error is left to the write of that.
func (q *quickWriter) take(pieces net.Buffers) (rest net.Buffers) {
	q.pieces = pieces
	_ = q.raw.Control(q.pour) // which fails on a closed connection alone
	rest, q.pieces = q.pieces, nil
	return rest
}

// Write implements io.Writer, with the deadline of the socket. p should be short.
func (q *quickWriter) Write(p []byte) (int, error) {
	q.left, q.err = p, nil
	err := q.raw.Write(q.put)
	if err == nil {
		err = q.err
	}
	n := len(p) - len(q.left)
	q.left = nil
	return n, err
}
