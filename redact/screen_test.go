package redact

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestScreen(t *testing.T) {
	s := NewScreen(newRedactor(t))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 3 * MaxScreened {
				in, want := fmt.Sprintf("nothing in %dth", i%5000), fmt.Sprintf("nothing in %dth", i%5000)
				if i%7 == 0 {
					in, want = fmt.Sprintf("%dth of anna@example.org", i), fmt.Sprintf("%dth of [EMAIL]", i)
				}
				if got := s.Text(in); got != want {
					t.Errorf("got %q, want %q", got, want)
					return
				}
			}
		})
	}
	all.Wait()
	if len(s.young) > MaxScreened || len(s.old) > MaxScreened {
		t.Errorf("holds %d and %d texts", len(s.young), len(s.old))
	}
	long := strings.Repeat("x", MaxScreenedBytes/3) + " anna@example.org "
	for i := range 10 {
		s.Text(fmt.Sprint(long, i))
		if s.bytes > MaxScreenedBytes {
			t.Fatalf("holds %d bytes", s.bytes)
		}
	}
}

// The memories of one recall, known and not.
func BenchmarkScreen(b *testing.B) {
	r := newRedactor(b)
	twice := prose + prose
	for _, known := range []bool{true, false} {
		b.Run(fmt.Sprintf("known=%v", known), func(b *testing.B) {
			s := NewScreen(r)
			for b.Loop() {
				if !known {
					s = NewScreen(r)
				}
				for i := range 8 {
					s.Text(twice[i : i+700])
				}
			}
		})
	}
}
