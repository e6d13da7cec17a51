package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

func setAttributes(cmd *exec.Cmd) {
	// A group of its own, so that an interrupt from the terminal leaves it to its parent when it ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// lowerPriority goes over the threads, since Linux counts priority by thread; new ones inherit it from those that make
// them. The second round meets those that were being made in the first.
func lowerPriority(nice int) error {
	if p, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil && 20-p >= nice { // the system call's scale
		return nil
	}
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// peerUser is the user at the other end.
func peerUser(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	if failed := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); failed != nil || err != nil {
		return 0, errors.Join(failed, err)
	}
	return int(cred.Uid), nil
}

// shortPath is a name of path that fits a socket's address: by way of the open directory, where the path itself is too
// long. done must be called once the name is not needed any more.
func shortPath(path string) (short string, done func(), err error) {
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}
