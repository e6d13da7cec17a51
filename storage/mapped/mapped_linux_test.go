package mapped

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestRelease: pages of the file that is wanted go, of all kinds of mappings that can lose nothing by it, and come back as they were.
func TestRelease(t *testing.T) {
	const pages = 64
	size := pages * os.Getpagesize()
	for _, tt := range []struct {
		name               string
		prot, flags        int
		write, protect     bool
		unwanted, released bool
	}{
		{name: "private", prot: unix.PROT_READ, flags: unix.MAP_PRIVATE, released: true},
		{name: "not wanted", prot: unix.PROT_READ, flags: unix.MAP_PRIVATE, unwanted: true},
		{name: "can be written to", prot: unix.PROT_READ | unix.PROT_WRITE, flags: unix.MAP_PRIVATE},
		{name: "was written to", prot: unix.PROT_READ | unix.PROT_WRITE, flags: unix.MAP_PRIVATE, write: true, protect: true},
		{name: "was not written to", prot: unix.PROT_READ | unix.PROT_WRITE, flags: unix.MAP_PRIVATE, protect: true, released: true},
		{name: "shared", prot: unix.PROT_READ | unix.PROT_WRITE, flags: unix.MAP_SHARED, write: true, released: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a file")
			if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			m, err := unix.Mmap(int(f.Fd()), 0, size, tt.prot, tt.flags)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Munmap(m) }()
			want := bytes.Repeat([]byte("x"), size)
			if tt.write {
				m[size/2], want[size/2] = 'y', 'y'
			}
			if tt.protect {
				if err := unix.Mprotect(m, unix.PROT_READ); err != nil {
					t.Fatal(err)
				}
			}
			same := func() bool { return bytes.Equal(m, want) } // touches them all
			if !same() {
				t.Fatal("not what was written")
			}
			if n := residentPages(t, m); n != pages {
				t.Fatalf("%d pages are resident before, want %d", n, pages)
			}
			if err := Release(func(p string) bool { return p == path && !tt.unwanted }); err != nil {
				t.Fatal(err)
			}
			if n := residentPages(t, m); (n == 0) != tt.released || n != 0 && n != pages {
				t.Errorf("%d of %d pages are resident after, want released: %t", n, pages, tt.released)
			}
			if !same() {
				t.Error("not what was written, after")
			}
		})
	}
}

// residentPages counts the pages of m that this process has mapped in.
func residentPages(t *testing.T, m []byte) (n int) {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries := make([]byte, len(m)/os.Getpagesize()*8)
	if _, err := f.ReadAt(entries, int64(uintptr(unsafe.Pointer(&m[0])))/int64(os.Getpagesize())*8); err != nil {
		t.Fatal(err)
	}
	for at := 7; at < len(entries); at += 8 {
		n += int(entries[at] >> 7)
	}
	return n
}

func TestResident(t *testing.T) {
	before := Resident()
	const size = 8 << 20
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(m) }()
	if bytes.Count(m, []byte{0}) != size { // touches it all
		t.Fatal("not what was written")
	}
	if got := Resident() - before; got < size || got > 2*size {
		t.Errorf("%d bytes more, of a file of %d", got, size)
	}
}
