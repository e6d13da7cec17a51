package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// inheritedFile is the number of the socket that a process is started with.
const inheritedFile = 3

// ErrAlone is the error of Inherit in a process that no Client has started.
var ErrAlone = errors.New("this process was not started by another one that wants a store")

// Inherit takes over the socket to the process that started this one, and returns what that has to say. Then the server is
// to be set up and [Server.ServeConn] called; when that returns, the other process wants no more, or is gone.
func Inherit() (net.Conn, []byte, error) {
	f := os.NewFile(inheritedFile, "store socket")
	if f == nil {
		return nil, nil, ErrAlone
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, nil, ErrAlone
	}
	if err := f.Close(); err != nil {
		return nil, nil, err
	}
	if _, ok := conn.(*net.UnixConn); !ok {
		return nil, nil, errors.Join(ErrAlone, conn.Close())
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, nil, err
	}
	boot, err := (&frames{r: conn}).readMessage(kindBoot, maxBoot) // without a buffer, which would swallow what comes behind
	if err != nil {
		return nil, nil, fmt.Errorf("read what to do: %w", err)
	}
	return conn, boot, conn.SetDeadline(time.Time{})
}

// LowerPriority makes the system prefer other processes to this one, by 0 to 19, where it knows of that. A process that was
// started with a lower priority keeps it. On Linux whoever wakes up also interrupts it sooner (longSlice).
func LowerPriority(nice int) error {
	if nice == 0 {
		return nil
	}
	return lowerPriority(nice)
}
