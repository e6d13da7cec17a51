package wrap

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// A console sends its signals to the agent itself, and there are no others.
var (
	passed       []os.Signal
	fromTerminal = []os.Signal{os.Interrupt}
)

func exitCode(s *os.ProcessState) int { return s.ExitCode() }

// detach keeps a process out of reach of this one's console.
func detach(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | 0x08000000} // CREATE_NO_WINDOW
}

// errShared is ERROR_SHARING_VIOLATION: somebody has the file open otherwise.
const errShared syscall.Errno = 32

// open opens a file, and shares it with others as mode says. It returns nil if
// others do not allow it. The file is closed at the end of its process at the
// latest.
func open(path string, mode uint32) (release func(), err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ, mode, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errShared) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = syscall.CloseHandle(h) }, nil
}

// lockShared returns nil if somebody holds the lock alone.
func lockShared(path string) (release func(), err error) { return open(path, syscall.FILE_SHARE_READ) }

// lockAlone returns nil if somebody holds the lock.
func lockAlone(path string) (release func(), err error) { return open(path, 0) }

// MakeDirectory makes a directory, which inherits the rights of its parent.
func MakeDirectory(path string) error { return os.MkdirAll(path, 0o700) }

// openOwn opens a file, and makes it if it is missing.
func openOwn(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, flags|os.O_CREATE, 0o600)
}
