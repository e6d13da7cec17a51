package dialect

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// endOf is rawStringEnd, byte by byte.
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

func TestRawStringEnd(t *testing.T) {
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
		if got, want := rawStringEnd(b, at), endOf(b, at); got != want {
			t.Fatalf("rawStringEnd(%q, %d): got %d, want %d", b, at, got, want)
		}
	}
}

// BenchmarkStringEnd measures the kinds of text that are long in a request.
func BenchmarkStringEnd(b *testing.B) {
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
			"raw":     func() int { return rawStringEnd(raw, 0) },
			"checked": func() int { end, _ := stringEnd(raw, 0); return end },
		} {
			b.Run(text.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				for b.Loop() {
					if end() != len(raw) {
						b.Fatal("wrong end")
					}
				}
			})
		}
	}
}
