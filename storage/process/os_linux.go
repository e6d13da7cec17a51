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

func setAttributes(cmd *exec.Cmd) {
	// A group of its own, so that an interrupt from the terminal leaves it to its parent when it ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// longSlice is how long each thread of the store's process asks to run at a time. Its share of the processors is what its priority gives it
// all the same, but since Linux 6.12 whoever asks for less (1 to 3 ms is the usual) and wakes up does not wait for the end of a slice: a request
// that comes in the midst of the store's work has a processor at once. Before, the kernel takes no note of it.
const longSlice = 20 * time.Millisecond

// lowerPriority goes over the threads, since Linux counts priority by thread; new ones inherit it from those that make
// them. The second round meets those that were being made in the first.
func lowerPriority(nice int) error {
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

// lengthenSlice leaves alone what was given another policy than the usual, and what a container forbids: the priority is what counts.
func lengthenSlice(thread int) {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL && a.Policy != unix.SCHED_BATCH {
		return
	}
	a.Runtime = uint64(longSlice)
	_ = unix.SchedSetAttr(thread, a, 0)
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
