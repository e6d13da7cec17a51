//go:build !windows

package load

import (
	"os"
	"syscall"
)

// terminate asks a process to stop in good order.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
