package load

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sharpenTimers takes the kernel's slack of 50 us off the sleeps of the calling
// thread. Where that is refused, sleeps are that much longer, which all targets
// share.
func sharpenTimers() {
	const prSetTimerSlack = 29
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
}

// preciseSleep sleeps at most d; a signal may end it early.
func preciseSleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil)
}

// shortSlice is how long a thread of the generator or the mock upstream asks to
// run at a time.
const shortSlice = 100 * time.Microsecond

// shortenSlices reduces how long the process's threads wait for a processor.
// They share the machine with the measured proxy, and what they wait for a
// processor would count as the proxy's delay, most where the proxy does most.
// Since Linux 6.12, a thread that asks for short time slices gets a processor
// sooner, while all shares stay the same; older kernels ignore it. The second
// round reaches threads that were being created in the first; later ones
// inherit it.
func shortenSlices() {
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range threads {
			if id, err := strconv.Atoi(t.Name()); err == nil {
				setSlice(id, shortSlice)
			}
		}
	}
}

// usualSlice undoes it for the calling thread and the processes that it starts:
// a proxy is measured as it is.
func usualSlice() { setSlice(0, 0) }

// setSlice leaves the slice alone where that is refused.
func setSlice(thread int, slice time.Duration) {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL {
		return
	}
	a.Runtime = uint64(slice)
	_ = unix.SchedSetAttr(thread, a, 0)
}
