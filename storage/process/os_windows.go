package process

import (
	"errors"
	"net"
	"os"
	"os/exec"
)

// Supported says whether a store can live in a process of its own on this system. Windows hands a child no socket.
const Supported = false

var errUnsupported = errors.New("a store in a process of its own is not supported on Windows")

func setAttributes(*exec.Cmd) {}

func lowerPriority(int) error { return errUnsupported }

func peerUser(*net.UnixConn) (int, error) { return 0, errUnsupported }

func shortPath(string) (string, func(), error) { return "", nil, errUnsupported }

func socketPair() (net.Conn, *os.File, error) { return nil, nil, errUnsupported }

func faultSignal(*os.ProcessState) bool { return false }
