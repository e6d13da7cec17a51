//go:build unix && !linux && !darwin

package process

import (
	"net"
	"os"
)

// peerUser takes the word of the socket's and its directory's modes, which let in nobody else.
func peerUser(*net.UnixConn) (uid int, err error) { return os.Geteuid(), nil }
