package persist

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// disk is an ext4 file system in a file, whose power can be cut.
type disk struct {
	t          *testing.T
	image, dir string
}

// newDisk creates and mounts one. That needs root, which the scripted run has.
func newDisk(t *testing.T, options string) *disk {
	t.Helper()
	skip := t.Skipf
	if os.Getenv("CI") == "true" {
		skip = t.Fatalf
	}
	if os.Geteuid() != 0 {
		skip("only root can mount a file system")
	}
	d := &disk{t, filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "disk")}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(d.image, 512<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", d.image).CombinedOutput(); err != nil {
		skip("no ext4 can be made here: %v: %s", err, out)
	}
	if out, err := d.mount(options); err != nil {
		skip("nothing can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(d.unmount)
	return d
}

func (d *disk) mount(options string) ([]byte, error) {
	return exec.Command("mount", "-o", "loop,"+options, d.image, d.dir).CombinedOutput()
}

func (d *disk) unmount() {
	d.t.Helper()
	var out []byte
	var err error
	for began := time.Now(); time.Since(began) < time.Minute; { // the last pages of a process that was killed may be on their way still
		if out, err = exec.Command("umount", d.dir).CombinedOutput(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	d.t.Fatalf("umount: %v: %s", err, out)
}

// cut shuts the file system down (EXT4_IOC_SHUTDOWN, without a flush of its
// journal). Nothing reaches the disk from then on, and what was written but not
// synced is gone.
func (d *disk) cut() {
	root, err := os.Open(d.dir)
	if err != nil {
		d.t.Error(err)
		return
	}
	defer root.Close()
	noFlush := uint32(2)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, root.Fd(), 0x8004587d, uintptr(unsafe.Pointer(&noFlush))); errno != 0 {
		d.t.Errorf("the power can't be cut: %v", errno)
	}
}

// restore does what a machine does when it starts again.
func (d *disk) restore(options string) {
	d.t.Helper()
	var err error
	for range 100 { // where another process has a copy of all mounts, the next mount is of the same dead file system
		d.unmount()
		if out, err := d.mount(options); err != nil {
			d.t.Fatalf("mount: %v: %s", err, out)
		}
		if err = os.WriteFile(filepath.Join(d.dir, "alive"), nil, 0o600); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	d.t.Fatalf("the disk does not come back: %v", err)
}

// TestPowerCut cuts the power of the disk at any moment. The process runs on
// for a moment, and must not acknowledge what can't be written. It shows that
// everything is synced that must be, not that disks are honest about their
// caches.
func TestPowerCut(t *testing.T) {
	var all killReport
	rounds := killRounds(4, 20)
	for first := 0; first < rounds; first += killsPerStore {
		options := []string{"data=ordered", "data=writeback"}[first/killsPerStore%2]
		d := newDisk(t, options)
		dir := filepath.Join(d.dir, "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		syscall.Sync()
		var k killReport
		for round := first; round < min(rounds, first+killsPerStore); round++ {
			k.run(t, dir, round, func(child *exec.Cmd) {
				d.cut()
				time.Sleep(rand.N(20 * time.Millisecond))
				_ = child.Process.Kill()
			})
			d.restore(options)
		}
		k.nothingLost(t, dir)
		all.add(&k)
	}
	all.report(t, rounds, "power cuts")
}
