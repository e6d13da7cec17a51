//go:build unix && !linux

package process

import (
	"fmt"
	"os/exec"
	"syscall"
)

func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func lowerPriority(nice int) error {
	if p, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil && p >= nice {
		return nil
	}
	return syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)
}

func shortPath(path string) (short string, done func(), err error) {
	if len(path) > maxPath {
		return "", nil, fmt.Errorf("%s is longer than the %d bytes that a socket's name may have", path, maxPath)
	}
	return path, func() {}, nil
}
