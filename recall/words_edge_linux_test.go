package recall

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What reads many characters at once reads none that are not the text's: behind it there may be nothing.
func TestTextsAtTheEdgeOfMemory(t *testing.T) {
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
	of, plain := newAnalyzerOf(newIndex(1, nil), loadWords), newAnalyzer(cachedWords)
	var got, want analysis
	for _, said := range []string{"It's user_service.go:8080, counterrevolutionary 3rd x? ", "Über “tea” naïve é ", "wordswithoutanyend", "          "} {
		for n := 1; n <= 5*blockSize; n++ {
			for _, from := range []int{0, page - n} {
				text := inside[from : from+n]
				for i := range text {
					text[i] = said[i%len(said)]
				}
				s := unsafe.String(&text[0], n)
				of.analyze(s, langEnglish, &got)
				if plain.analyze(s, langEnglish, &want); got.traits != want.traits || len(got.numbers) != len(want.terms) {
					t.Fatalf("%q: %d terms, traits %b, want %d, %b", s, len(got.numbers), got.traits, len(want.terms), want.traits)
				}
			}
		}
	}
}
