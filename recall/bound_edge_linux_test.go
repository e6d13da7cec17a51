package recall

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds read and write what they were given, and nothing beside it.
func TestBoundsAtTheEdgeOfMemory(t *testing.T) {
	for _, n := range []int{64, 96, 1024} {
		for _, atEnd := range []bool{false, true} {
			tables := &edge[boundTables](t, 1, atEnd)[0]
			tables.base = mostBound
			out := edge[int16](t, n, atEnd)
			tables.bounds(out, edge[frequency](t, n, atEnd), edge[frequency](t, n, atEnd), edge[brief](t, n, atEnd))
			over := edge[uint64](t, n/64, atEnd)
			overBounds(out, mostBound, over)
			for i, got := range over {
				if got != ^uint64(0) {
					t.Fatalf("%d turns: over %d is %x, want all", n, i, got)
				}
			}
		}
	}
}

// edge is n zeros at the start or the end of a page that has nothing beside it.
func edge[T any](t *testing.T, n int, atEnd bool) []T {
	t.Helper()
	page := lonePage(t)
	size := n * int(unsafe.Sizeof(*new(T)))
	from := 0
	if atEnd {
		from = len(page) - size
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&page[from : from+size][0])), n)
}

// lonePage is a page of memory with nothing before and behind it.
func lonePage(t *testing.T) []byte {
	t.Helper()
	page := unix.Getpagesize()
	room, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(room) })
	for _, beyond := range [][]byte{room[:page], room[2*page:]} {
		if err := unix.Mprotect(beyond, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return room[page : 2*page]
}
