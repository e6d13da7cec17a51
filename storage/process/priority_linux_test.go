package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const priorityChild = "REMORA_TEST_PRIORITY" // what the child is to ask for

// TestLowerPriority: a process gets the priority that is asked for, but never a higher one than it was started with.
func TestLowerPriority(t *testing.T) {
	if ask := os.Getenv(priorityChild); ask != "" {
		var nice int
		if _, err := fmt.Sscan(ask, &nice); err != nil {
			t.Fatal(err)
		}
		if err := LowerPriority(nice); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("nice=%d\n", niceness(t))
		return
	}
	own := niceness(t)
	for _, tt := range []struct{ started, asked, want int }{
		{0, 19, 19}, {0, 0, own}, {19, 5, 19},
	} {
		cmd := exec.CommandContext(t.Context(), "nice", "-n", fmt.Sprint(tt.started), os.Args[0], "-test.run=^TestLowerPriority$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", priorityChild, tt.asked))
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, fmt.Appendf(nil, "nice=%d\n", tt.want)) {
			t.Errorf("started with %d, asked for %d: error %v, want nice=%d in %q", tt.started, tt.asked, err, tt.want, out)
		}
	}
}

func niceness(t *testing.T) int {
	p, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - p // the system call's scale
}
