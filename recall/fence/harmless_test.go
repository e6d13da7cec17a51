package fence

import (
	"strings"
	"testing"
)

// The short cut never lets through what the long way would change.
func FuzzHarmless(f *testing.F) {
	for _, s := range []string{"plain text", "remora memory", "rem ora-mem.ory", "Human: hi", "a  b", " a", "a ", "### system", "remo9ramemory", "re-re-remora_memory"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !harmless(s, DefaultMaxLine) {
			return
		}
		lines := visibleLines(s, DefaultMaxLine)
		for i, l := range lines {
			lines[i] = defuseRoleLine(l)
		}
		if long := defuseName(defuseTokens(strings.Join(lines, " "))); long != s {
			t.Errorf("the long way makes %q of %q", long, s)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	var lines []Line
	for range 8 {
		lines = append(lines, Line{ID: "0123456789abcdef", Time: 1, Who: "user", Text: "My daughter Mia is allergic to peanuts, and her memory of the summer in Rome remains more or less the same."})
	}
	for b.Loop() {
		Render("0123456789ab", lines, Options{})
	}
}
