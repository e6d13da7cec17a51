//go:build unix

package wrap

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Signals that are passed on to the agent: always, and unless its terminal sends
// them to the agent itself.
var (
	passed       = []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}
	fromTerminal = []os.Signal{syscall.SIGINT, syscall.SIGQUIT}
)

// exitCode returns the exit code of a process, as a shell does.
func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// detach keeps a process out of reach of this one's terminal.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// lockShared returns nil if somebody holds the lock alone.
func lockShared(path string) (release func(), err error) { return lock(path, syscall.LOCK_SH) }

// lockAlone returns nil if somebody holds the lock.
func lockAlone(path string) (release func(), err error) { return lock(path, syscall.LOCK_EX) }

func lock(path string, how int) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		switch err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, f.Close()
		}
		return nil, errors.Join(err, f.Close())
	}
}
