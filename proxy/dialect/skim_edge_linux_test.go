package dialect

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What looks at many bytes at once looks at none that are not the body's: behind it there may be nothing.
func TestBodiesAtTheEdgeOfMemory(t *testing.T) {
	page := unix.Getpagesize()
	room, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(room) }()
	for _, beyond := range [][]byte{room[:page], room[2*page:]} {
		if err := unix.Mprotect(beyond, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	inside := room[page : 2*page]
	for n := 1; n <= 700; n++ {
		for _, from := range []int{0, page - n} {
			b := inside[from : from+n]
			for i := range b {
				b[i] = 'x'
			}
			b[0] = '"'
			for _, end := range []byte{'x', '"', '\\'} {
				b[n-1] = end
				want := endOf(b, 0)
				for _, far := range []bool{false, true} {
					if got := skim(b, 0, far && lookFar(), far && lookWide()); got != want {
						t.Fatalf("%d bytes that end with %q: got %d, want %d", n, end, got, want)
					}
				}
			}
		}
	}
}
