package extract

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNeedles(t *testing.T) {
	all := []string{"abc", "abd", "bcda", "c a", "ddddd"}
	n := newNeedles(all...)
	r := rand.New(rand.NewPCG(1, 1))
	found := 0
	for range 100_000 {
		text := make([]byte, r.IntN(12))
		for i := range text {
			text[i] = "abcdA \xe9"[r.IntN(7)]
		}
		want := false
		for _, s := range all {
			want = want || strings.Contains(strings.ReplaceAll(string(text), "A", "a"), s)
		}
		if got := n.in(string(text)); got != want {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
		if want {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d texts hold any", found)
	}
}
