// Package process lets a store live in a process of its own: a server of [storage.Store] and [storage.Local] over a Unix
// socket, a client, and the supervision of the process that serves. What the store is, is the caller's to say.
//
// Badger ends its process on a full disk and on some damage, and nothing in that process can help it. So the one that
// carries the traffic holds a [Client], whose guarantees are:
//
//   - While the process is away, stopped, or silent for longer than [Config.Suspect], every call returns an error that wraps
//     [storage.ErrUnavailable] at once, and calls under way end with one. Their effect is then unknown, and repeating them
//     is safe: the server changes things in the order in which one connection asked, and never begins what was called off.
//   - A process that ends is started again, after a wait that doubles and is jittered. One that stays silent for
//     [Config.Hang] is killed first, as is one that does not finish a call within [Config.Stuck].
//   - It dies with this one: it ends when its socket does, and on Linux the kernel kills it as well.
//   - Nothing secret is in its arguments or its environment: what it needs is sent through the socket.
//
// Both ends of a connection must be of the same build, and say which before any call; frame.go has the protocol. All sizes that a
// peer names are checked against bounds, and nothing is allocated for what has not arrived, but for an answer whose size the server
// has told. A frame that breaks the protocol ends the connection. Commands reach the store of a running Remora by [Server.Listen] and [Dial]; the socket is for
// the same user only, by mode and by the credentials of the peer.
package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Bounds of a connection, the same at both ends.
const (
	maxFrame   = 64 << 10 // bytes of a frame behind its head; so a ping never waits behind more than that
	maxMessage = 64 << 20 // bytes of a call or an answer, which are many frames. Larger calls are storage.ErrInvalid
	maxHeld    = 96 << 20 // bytes of calls that a server holds, of answers that wait to be sent. Beyond, calls are refused as busy
	maxCalls   = 512      // calls under way on one connection; the same
	maxText    = 4 << 10  // bytes of an error's text; the rest is cut
	maxBoot    = 1 << 20  // bytes of what a process is told at its start
	window     = 16       // frames of a stream that are under way to a reader who has not taken them
)

const handshakeTimeout = 5 * time.Second

// Status is what a store tells of itself. Reading it does no I/O.
type Status struct {
	Open bool
	// Opening says that the store is being opened: a process that crashes now may have met damaged files.
	Opening bool
	Reason  string // why it is not open, or takes no writes; "" = all is well
	// FailedOpens counts attempts to open it that failed, since it was last open.
	FailedOpens uint64
	// FreeBytes on its file system, as last measured; 0 = not known.
	FreeBytes uint64
	Damaged   uint64 // records that could not be read, by count of readings, and files found damaged
	Panics    uint64 // caught since the start
	// Aside names what was set aside because it was damaged and still lies there.
	Aside []string

	PID      int    // of the process that serves; 0 = none, or this one
	Restarts uint64 // of it, since the start
}

func unavailable(reason string) error {
	return fmt.Errorf("%w: %s", storage.ErrUnavailable, reason)
}

// Codes of errors on the wire, in order of precedence.
const (
	codeOK byte = iota
	codeUnavailable
	codeNotFound
	codeInvalid
	codeDamaged
	codeCanceled
	codeDeadline
	codeUnsupported
	codeOther
)

func sentinel(code byte) error {
	switch code {
	case codeUnavailable:
		return storage.ErrUnavailable
	case codeNotFound:
		return storage.ErrNotFound
	case codeInvalid:
		return storage.ErrInvalid
	case codeDamaged:
		return storage.ErrDamaged
	case codeCanceled:
		return context.Canceled
	case codeDeadline:
		return context.DeadlineExceeded
	case codeUnsupported:
		return errors.ErrUnsupported
	}
	return nil
}

func codeOf(err error) byte {
	if err == nil {
		return codeOK
	}
	for code := codeUnavailable; code < codeOther; code++ {
		if errors.Is(err, sentinel(code)) {
			return code
		}
	}
	return codeOther
}

// remoteError is an error of the other side: its text, and which of the known errors it is.
type remoteError struct {
	code byte
	text string
}

func (e *remoteError) Error() string { return e.text }

// Unwrap gives nil for an error of no known kind, which only administrative calls have.
func (e *remoteError) Unwrap() error { return sentinel(e.code) }
