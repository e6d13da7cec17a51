package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const priorityChild = "REMORA_TEST_PRIORITY" // the niceness that the child sets

// TestLowerPriority guards that a process gets the requested priority, but
// never a higher one than it was started with, and that all of its threads ask
// for long slices.
func TestLowerPriority(t *testing.T) {
	if ask := os.Getenv(priorityChild); ask != "" {
		var nice int
		if _, err := fmt.Sscan(ask, &nice); err != nil {
			t.Fatal(err)
		}
		if err := LowerPriority(nice); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("nice=%d\nslices=%v\n", niceness(t), slicesOf(t))
		return
	}
	own := niceness(t)
	for _, tt := range []struct{ started, asked, want int }{
		{0, 19, 19}, {0, 0, own}, {19, 5, 19},
	} {
		cmd := exec.CommandContext(t.Context(), "nice", "-n", fmt.Sprint(tt.started), os.Args[0], "-test.run=^TestLowerPriority$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", priorityChild, tt.asked))
		out, err := cmd.CombinedOutput()
		if want := longSlice; tt.asked > 0 && slicesKnown(t) && !bytes.Contains(out, fmt.Appendf(nil, "slices=[%v]\n", want)) {
			t.Errorf("asked for %d: want slices of %v in all threads in %q", tt.asked, want, out)
		}
		if err != nil || !bytes.Contains(out, fmt.Appendf(nil, "nice=%d\n", tt.want)) {
			t.Errorf("started with %d, asked for %d: error %v, want nice=%d in %q", tt.started, tt.asked, err, tt.want, out)
		}
	}
}

// slicesOf returns the distinct slices of the threads of this process, some of
// which are new.
func slicesOf(t *testing.T) []time.Duration {
	done := make(chan struct{})
	defer close(done)
	for range 8 { // more than a new process has
		made := make(chan struct{})
		go func() {
			runtime.LockOSThread() // so that the next goroutine needs another thread
			close(made)
			<-done
		}()
		<-made
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	var all []time.Duration
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		a, err := unix.SchedGetAttr(id, 0)
		if errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Duration(a.Runtime))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// slicesKnown reports whether the kernel supports slices per thread.
func slicesKnown(t *testing.T) bool {
	a, err := unix.SchedGetAttr(0, 0)
	known := err == nil && a.Policy == unix.SCHED_NORMAL && a.Runtime > 0
	if !known {
		t.Log("this kernel does not report slices")
	}
	return known
}

func niceness(t *testing.T) int {
	p, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - p // the system call's scale
}
