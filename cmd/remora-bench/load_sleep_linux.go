package main

import (
	"syscall"
	"time"
)

// sharpenTimers takes the kernel's slack of 50 us off the sleeps of the calling thread. Where that is refused, sleeps
// are that much longer, which all targets share.
func sharpenTimers() {
	const prSetTimerSlack = 29
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
}

// preciseSleep sleeps at most d; a signal may end it early.
func preciseSleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil)
}
