package listener

import (
	"errors"
	"runtime"
	"syscall"
)

// wsaAddrInUse is WSAEADDRINUSE. Windows reports that in place of
// syscall.EADDRINUSE, which is a number of Go's own there.
const wsaAddrInUse syscall.Errno = 10048

// IsInUse reports whether err says that an address is listened on already.
func IsInUse(err error) bool { return isInUse(runtime.GOOS, err) }

func isInUse(system string, err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || system == "windows" && errors.Is(err, wsaAddrInUse)
}
