package dialect

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// endOf is skimEnd, byte by byte.
func endOf(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// With and without what the processor can do at once, the end is found, wherever the string and its quotes stand.
func TestSkim(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 40_000 {
		b := make([]byte, 2+rnd.IntN(600))
		rare := 1 + rnd.IntN(rnd.IntN(200)+1)
		for i := range b {
			b[i] = `"\\]#`[rnd.IntN(5)]
			if rnd.IntN(rare) > 0 {
				b[i] = "x]#"[rnd.IntN(3)]
			}
		}
		at := rnd.IntN(len(b))
		b[at] = '"'
		want := endOf(b, at)
		if got := skim(b, at, false, false); got != want {
			t.Fatalf("skim(%q, %d): got %d, want %d", b, at, got, want)
		}
		if got := skim(b, at, lookFar(), false); got != want {
			t.Fatalf("skim(%q, %d), not wide: got %d, want %d", b, at, got, want)
		}
		if got := skimEnd(b, at); got != want {
			t.Fatalf("skimEnd(%q, %d): got %d, want %d", b, at, got, want)
		}
	}
}

// Text of the kinds that are long in a request.
func BenchmarkSkim(b *testing.B) {
	quoted := func(s string) []byte {
		q, _ := json.Marshal(s) // strings always encode
		return q
	}
	arguments := `{"path":"a.go","lines":[{"old":"x := 1","new":"x := 2"}]}`
	for _, text := range []struct {
		name string
		raw  []byte
	}{
		{"prose", quoted(strings.Repeat("The quick brown fox jumps over the lazy dog, and then it rests.\n", 4096))},
		{"code", bytes.Repeat([]byte(code), 2048)},
		{"arguments", quoted(strings.Repeat(arguments, 4096))},
		{"nested", quoted(strings.Repeat(string(quoted(arguments)), 4096))},
		{"backslashes", quoted(strings.Repeat(`\`, 128<<10))},
	} {
		raw := text.raw
		if raw[0] != '"' {
			raw = append(append([]byte{'"'}, raw...), '"')
		}
		for name, end := range map[string]func() int{
			"skimmed": func() int { return skimEnd(raw, 0) },
			"by word": func() int { return skim(raw, 0, false, false) },
			"by 64":   func() int { return skim(raw, 0, lookFar(), false) },
			"checked": func() int { end, _ := stringEnd(raw, 0); return end },
		} {
			b.Run(text.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				for b.Loop() {
					if end() != len(raw) {
						b.Fatal("another end")
					}
				}
			})
		}
	}
}
