//go:build !(linux || darwin || freebsd)

package process

import (
	"errors"
	"net"
	"os"
	"os/exec"
)

// Supported reports whether a store can live in a process of its own on this
// system. On Windows a child process cannot inherit a socket.
const Supported = false

var errUnsupported = errors.New("a store in a process of its own is not supported on this system")

func setAttributes(*exec.Cmd) {}

// LowerPriority is not supported on this system.
func LowerPriority(nice int) error {
	if nice == 0 {
		return nil
	}
	return errUnsupported
}

func peerUser(*net.UnixConn) (int, error) { return 0, errUnsupported }

func shortPath(string) (string, func(), error) { return "", nil, errUnsupported }

func socketPair() (net.Conn, *os.File, error) { return nil, nil, errUnsupported }

func faultSignal(*os.ProcessState) bool { return false }
