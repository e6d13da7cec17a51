package background

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestYield guards that a thread that waits for the same processor gets it
// within a few yields, long before the kernel would preempt this one.
func TestYield(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	var stop atomic.Bool
	waiting, done := make(chan struct{}), make(chan struct{})
	defer func() { stop.Store(true); <-done }()
	go func() {
		defer close(done)
		pin(t) // the thread ends with the goroutine
		close(waiting)
		for !stop.Load() {
			runtime.Gosched()
		}
	}()
	<-waiting
	pin(t)
	const yields = 100
	w := Begin()
	before := switches(t)
	for range yields {
		w.turn = yieldAfter
		for end := w.yielded.Add(yieldAfter); time.Now().Before(end); {
		}
		w.Yield()
	}
	if n := switches(t) - before; n < yields/4 { // in slices of a millisecond it would be 20 at most
		t.Errorf("the other thread ran %d times in %d yields", n, yields)
	}
}

// pin keeps the goroutine on the first processor, in a thread that ends with
// it.
func pin(t *testing.T) {
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Error(err)
		return
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Error(err)
	}
}

// switches counts the involuntary context switches of the thread.
func switches(t *testing.T) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return u.Nivcsw
}
