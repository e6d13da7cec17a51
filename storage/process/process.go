// Package process runs a store in a process of its own: a server of
// [storage.Store] and [storage.Local] over a Unix socket, a client that is such
// a store again, and the supervision of the process. Which store it is, the
// caller decides.
//
// Badger ends its process on a full disk and on some damage, and nothing in
// that process can prevent it. So the process that carries the traffic holds a
// [Client], which guarantees:
//
//   - While the store's process is absent, stopped, or silent for longer than [Config.Suspect], every call returns at
//     once an error that wraps [storage.ErrUnavailable], and so do the calls under way. Their effect is then unknown and
//     repeating them is safe: the server applies the writes of one connection in order, and never starts a canceled one.
//   - A process that ends is started again, after a jittered wait that doubles. One that is silent for [Config.Hang], or
//     does not finish a call within [Config.Stuck], is killed first.
//   - The child dies with its parent: it ends when its socket does, and on Linux the kernel kills it as well.
//   - No secret is in its arguments or environment: what it needs is sent through the socket.
//
// Both ends of a connection must be of the same build. All sizes that a peer
// names are checked against limits, and a frame that violates the protocol ends
// the connection. Commands reach the store of a running Remora through
// [Server.Listen] and [Dial]; the socket is for the same user only, by its mode
// and the peer's credentials.
//
// cmd/remora calls it. operations.go defines each call once for both ends;
// protocol.go has the frames.
package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/wire"
)

// Limits of a connection, the same at both ends.
const (
	maxFrame     = 64 << 10 // bytes of a frame's body, and so what a ping may have to wait for
	maxMessage   = 64 << 20 // bytes of a call or an answer; larger calls are storage.ErrInvalid
	maxHeld      = 96 << 20 // bytes of calls that a server holds, or of answers that wait to be sent; beyond, errBusy
	maxCalls     = 512      // calls under way on one connection; beyond, errBusy
	maxText      = 4 << 10  // bytes of an error's text; the rest is cut
	maxBoot      = 1 << 20  // bytes of the boot message
	streamWindow = 16       // frames of a stream that may be under way
)

const handshakeTimeout = 5 * time.Second

// Status is the state of a store. Reading it does no I/O.
type Status struct {
	Open bool
	// Opening is set while the store is being opened: a process that crashes
	// then may have met damaged files.
	Opening bool
	Reason  string // why it is not open or refuses writes; "" = neither
	// FailedOpens counts the failed attempts to open it since it was last open.
	FailedOpens uint64
	FreeBytes   uint64 // on its file system, as last measured; 0 = unknown
	Damaged     uint64 // files found damaged and reads of unreadable records, since the start
	Panics      uint64 // caught since the start
	// SetAside lists the paths of stores that were set aside because of damage
	// and still exist.
	SetAside []string

	PID      int    // of the process that serves; 0 = none, or this one
	Restarts uint64 // of that process, since the start
}

func unavailable(reason string) error {
	return fmt.Errorf("%w: %s", storage.ErrUnavailable, reason)
}

// Codes of errors on the wire, in order of precedence.
const (
	codeOK byte = iota
	codeUnavailable
	codeNotFound
	codeTooManyUsers // before what it wraps
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
	case codeTooManyUsers:
		return storage.ErrTooManyUsers
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

// remoteError is an error of the other end: its text, and the sentinel that it
// wraps.
type remoteError struct {
	code byte
	text string
}

func (e *remoteError) Error() string { return e.text }

// Unwrap returns nil for an error that wraps no sentinel, as only
// administrative calls return.
func (e *remoteError) Unwrap() error { return sentinel(e.code) }

func codeError(c *wire.Coder, e *remoteError) {
	c.Byte(&e.code)
	wire.String(c, &e.text)
}

// errorAnswer encodes err as an answer.
func errorAnswer(err error) []byte {
	text, code := err.Error(), codeOf(err)
	text = text[:min(len(text), maxText)]
	c := wire.Writer(nil)
	codeError(c, &remoteError{code, text})
	return c.Bytes()
}
