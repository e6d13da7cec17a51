package redact

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"testing"
)

// TestCache checks that texts are redacted once and that the limits hold.
func TestCache(t *testing.T) {
	s := NewCache(newRedactor(t))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 3 * MaxCached {
				in, want := fmt.Sprintf("nothing in %dth", i%5000), fmt.Sprintf("nothing in %dth", i%5000)
				if i%7 == 0 {
					in, want = fmt.Sprintf("%dth of anna@example.org", i), fmt.Sprintf("%dth of [EMAIL]", i)
				}
				if got := s.Redact(in); got != want {
					t.Errorf("got %q, want %q", got, want)
					return
				}
			}
		})
	}
	all.Wait()
	if len(s.young) > MaxCached || len(s.old) > MaxCached {
		t.Errorf("holds %d and %d texts", len(s.young), len(s.old))
	}
	long := strings.Repeat("x", MaxCachedBytes/3) + " anna@example.org "
	for i := range 10 {
		s.Redact(fmt.Sprint(long, i))
		if s.bytes > MaxCachedBytes {
			t.Fatalf("holds %d bytes", s.bytes)
		}
	}
}

// TestCacheOfCleanTexts checks that a known clean text is found without a lock
// and costs no memory.
func TestCacheOfCleanTexts(t *testing.T) {
	s := NewCache(newRedactor(t))
	for round := range 2 {
		for i := range 1000 {
			text := fmt.Sprintf("nothing in %dth", i)
			if key := max(maphash.String(s.seed, text), 1); round == 1 && !s.clean[key%uint64(len(s.clean))].has(key) {
				t.Fatalf("%q was forgotten", text)
			}
			s.Redact(text)
		}
	}
	if n := len(s.young) + len(s.old); n != 0 {
		t.Errorf("%d clean texts are kept among the changed ones", n)
	}
	if allocs := testing.AllocsPerRun(10, func() { s.Redact("nothing in 7th") }); allocs != 0 {
		t.Errorf("%v allocations for a known text", allocs)
	}
}

// BenchmarkCache redacts the memories of one recall, known and unknown.
func BenchmarkCache(b *testing.B) {
	r := newRedactor(b)
	twice := prose + prose
	for _, known := range []bool{true, false} {
		b.Run(fmt.Sprintf("known=%v", known), func(b *testing.B) {
			s := NewCache(r)
			for b.Loop() {
				if !known {
					s = NewCache(r)
				}
				for i := range 8 {
					s.Redact(twice[i : i+700])
				}
			}
		})
	}
}
