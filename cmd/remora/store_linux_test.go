package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// A process that gets no more memory ends: on its own, where the kernel refuses
// it address space, or killed, where it is over a control group's limit. That
// speaks against the machine, not against the store.
func TestStoreProcessOutOfMemory(t *testing.T) {
	t.Parallel()
	t.Run("no address space", func(t *testing.T) {
		small := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20} // of which it has more
		outOfMemory(t, func(pid int) error { return unix.Prlimit(pid, unix.RLIMIT_AS, &small, nil) })
	})
	t.Run("control group", func(t *testing.T) {
		g := storagetest.NewGroup(t, "starved", 1<<20)
		if !g.Limited() {
			t.Skip("no control group can be made here")
		}
		outOfMemory(t, g.Add)
		t.Logf("the kernel killed %d", g.Kills())
	})
}

func outOfMemory(t *testing.T, starve func(pid int) error) {
	t.Helper()
	r := newRig(t, rigDir(t), nil)
	stop := r.traffic()
	rounds, byItself := storeRounds(2, 10), 0
	for range rounds {
		time.Sleep(200 * time.Millisecond)
		r.failing.Store(true)
		pid := 0 // which would be this process
		r.await("a process", func() bool { pid = r.pid(); return pid > 0 })
		if err := starve(pid); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		for user := range 200 { // a scan makes it ask for memory, sooner or later
			if r.pid() != pid {
				byItself++
				break
			}
			_, _ = r.sys.store.AllRecords(t.Context(), "ledger", "", user)
			time.Sleep(5 * time.Millisecond)
		}
		if r.pid() == pid { // idle as it is it may get along
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		r.replaced(pid)
		r.failing.Store(false)
	}
	stop()
	r.nothingLost()
	t.Logf("%d of %d processes ended because memory ran out", byItself, rounds)
}

// mounted makes a small file system for a test. Only root can; the scripted run
// is.
func mounted(t *testing.T, kind string, megabytes int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("must be root to mount a file system")
		}
		t.Skip("only root can mount a file system")
	}
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", megabytes), "remora-test", dir}
	if kind == "ext4" {
		image := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, int64(megabytes)<<20); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", image).CombinedOutput(); err != nil {
			unmade(t, "no ext4 can be made here: %v: %s", err, out)
		}
		args = []string{"-o", "loop", image, dir}
	}
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		unmade(t, "nothing can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // others look at what is mounted
			out, err := exec.Command("umount", dir).CombinedOutput()
			if err == nil {
				return
			}
			if time.Since(began) > patience {
				t.Fatalf("umount: %v: %s", err, out)
			}
		}
	})
	return dir
}

// unmade skips a test that lacks a file system, but not in the scripted run,
// which has what it takes.
func unmade(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// fillDisk takes the disk's last byte, and returns how to give it back.
func fillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "hog")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDiskFills(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tmpfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			dir := mounted(t, kind, 192)
			r := newRig(t, filepath.Join(dir, "remora"), func(c *config.Config) { c.Storage.MinFreeBytes = 32 << 20 })
			r.await("reserve", func() bool {
				_, err := os.Stat(filepath.Join(r.sys.config.Storage.Dir, "reserve"))
				return err == nil
			})
			stop := r.traffic()
			rounds := storeRounds(2, 20)
			for range rounds {
				time.Sleep(200 * time.Millisecond)
				r.failing.Store(true)
				free := fillDisk(t, dir)
				r.await("the store is away", func() bool { return !r.sys.store.Status().Open })
				time.Sleep(200 * time.Millisecond)
				if reason := r.sys.store.Status().Reason; !strings.Contains(reason, "no space") {
					t.Logf("the status says: %q", reason)
				}
				free()
				r.awaitMemory()
				r.failing.Store(false)
			}
			stop()
			r.nothingLost()
			t.Logf("%d fills, %d requests, %d with memory, the process ended %d times", rounds, r.requests.Load(), r.injected.Load(),
				r.sys.store.Status().Restarts)
			r.stop() // before the disk goes
		})
	}
}
