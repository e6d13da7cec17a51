//go:build unix

package wrap

import (
	"errors"
	"fmt"
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
	f, err := openOwn(path, os.O_RDWR)
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

// MakeDirectory makes a directory that is this user's alone, or makes one that
// exists so.
func MakeDirectory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return os.Chmod(path, 0o700)
}

// openOwn opens a regular file that is this user's alone, and makes it if it is
// missing. It follows no link in place of the file.
func openOwn(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	case err == nil && info.Mode().Perm()&0o077 != 0:
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
