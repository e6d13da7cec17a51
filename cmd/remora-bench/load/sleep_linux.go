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

// shortenSlices has the process's threads wait less for a processor: they share
// the machine's with the proxy that is measured, and what they wait for it
// would count as the proxy's delay, most where it does most. Since Linux 6.12
// whoever asks to run for a short time at once has the processor the sooner;
// nobody's share of it changes. Before, the kernel takes no note of it. The
// second round meets the threads that were being made in the first; later ones
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
