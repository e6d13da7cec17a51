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
	"time"

	"golang.org/x/sys/unix"
)

// setAttributes makes the child die with its parent, and puts it in a process
// group of its own so that an interrupt from the terminal does not reach it.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// longSlice is the scheduler slice that each thread of the store's process asks
// for. It does not change the process's share of the processors. But since
// Linux 6.12 a thread that wakes up with a shorter slice (1 to 3 ms by default)
// preempts a longer one, so a request gets a processor immediately while the
// store works. Older kernels ignore it.
const longSlice = 20 * time.Millisecond

// LowerPriority makes the system prefer other processes to this one by nice, 0
// to 19, where it supports that. A process that was started with a lower
// priority keeps it.
//
// Linux keeps the priority per thread, and new threads inherit it. The second
// round reaches threads that were being created during the first.
func LowerPriority(nice int) error {
	if nice == 0 {
		return nil
	}
	p, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	low := err == nil && 20-p >= nice // the system call's scale
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
			if !low {
				if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, syscall.ESRCH) {
					return err
				}
			}
			lengthenSlice(id)
		}
	}
	return nil
}

// lengthenSlice skips threads with an unusual scheduling policy, and ignores a
// refusal by a container: the priority matters more.
func lengthenSlice(thread int) {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL && a.Policy != unix.SCHED_BATCH {
		return
	}
	a.Runtime = uint64(longSlice)
	_ = unix.SchedSetAttr(thread, a, 0)
}

// peerUser returns the user at the other end.
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

// shortPath returns a name of path that fits a socket address: through the open
// directory if path itself is too long. done must be called once the name is no
// longer needed.
func shortPath(path string) (short string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}
