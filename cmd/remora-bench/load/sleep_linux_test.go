package load

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSlices: the generator's threads ask for short slices, the mock upstream's
// too, what is measured for none.
func TestSlices(t *testing.T) {
	slice := func(id int) uint64 {
		t.Helper()
		a, err := unix.SchedGetAttr(id, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.Runtime
	}
	runtime.LockOSThread() // which 0 stands for; the thread ends with the test
	usualSlice()
	usual := slice(0)
	if usual == 0 {
		t.Log("this kernel has no slices, or does not tell of them: nothing is asked for")
	}
	shortenSlices()
	want := min(uint64(shortSlice), usual)
	if got := slice(unix.Getpid()); got != want { // another thread than this one, mostly
		t.Errorf("a thread of the generator has a slice of %d ns, want %d", got, want)
	}

	for _, tt := range []struct {
		want uint64
		args []string
	}{
		{want, []string{"upstream"}},
		{usual, []string{"reverseproxy", "-upstream", "http://127.0.0.1:1"}},
	} {
		name := tt.args[0]
		p, err := startProcess(t.Context(), name, filepath.Join(t.TempDir(), "log"), os.Args[0], tt.args, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.listening(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := slice(p.cmd.Process.Pid); got != tt.want {
			t.Errorf("%s has a slice of %d ns, want %d", name, got, tt.want)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	}
}
