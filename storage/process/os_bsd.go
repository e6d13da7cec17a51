//go:build darwin || freebsd

package process

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// LowerPriority makes the system prefer other processes to this one by nice, 0
// to 19. A process that was started with a lower priority keeps it.
func LowerPriority(nice int) error {
	if p, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); nice == 0 || err == nil && p >= nice {
		return nil
	}
	return syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)
}

// peerUser returns the user at the other end.
func peerUser(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	if failed := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); failed != nil || err != nil {
		return 0, errors.Join(failed, err)
	}
	return int(cred.Uid), nil
}

func shortPath(path string) (short string, done func(), err error) {
	if len(path) > maxSocketPath {
		return "", nil, fmt.Errorf("%s is longer than the %d bytes that a socket's name may have", path, maxSocketPath)
	}
	return path, func() {}, nil
}
