//go:build unix

package signals

import (
	"os"

	"golang.org/x/sys/unix"
)

// attached reports whether this process has a controlling terminal.
func attached() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// Foreground reports whether a terminal sends its signals, such as that of
// Ctrl-C, to the process group of this process.
func Foreground() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
