package load

import (
	"os/exec"
	"syscall"
)

// bindLife has the kernel kill the child when the calling thread ends. The
// child also leaves the process group of the terminal, so that an interrupt
// reaches this program alone, which then stops its children in order.
func bindLife(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
