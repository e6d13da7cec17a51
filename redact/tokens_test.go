package redact

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestTokenDataIsValid(t *testing.T) {
	known := ids(builtIn())
	for column := range rows(tokenData) {
		if len(column) != 4 || strings.Trim(strings.NewReplacer("uniform", "", "anywhere", "", "digits", "").Replace(column[2]), " ") != "" {
			t.Fatalf("row %q", column)
		}
		if _, ok := known[column[0]]; !ok || len(strings.Fields(column[1])) == 0 {
			t.Errorf("row %q", column)
		}
		if _, err := regexp.Compile(column[3]); err != nil {
			t.Errorf("row %q: %v", column, err)
		}
	}
}

// TestMatchersEqualTheirPatterns compares counted patterns with their regular
// expressions.
func TestMatchersEqualTheirPatterns(t *testing.T) {
	const letters = "abcdefXYZ0123456789_-+/=.%~: "
	r := rand.New(rand.NewPCG(1, 1))
	counted := 0
	for _, shape := range tokenShapes() {
		if _, _, _, ok := classRun(shape.pattern); !ok {
			continue
		}
		counted++
		fast, slow := matcher(shape.pattern), regexp.MustCompile(`^(?:`+shape.pattern+`)`)
		for range 100 {
			some := letters[:1+r.IntN(len(letters))]
			var b strings.Builder
			for range r.IntN(300) {
				b.WriteByte(some[r.IntN(len(some))])
			}
			b.WriteString([]string{"", " ", "\u00e9", "\xff", "x"}[r.IntN(5)])
			text, want := b.String(), -1
			if m := slow.FindStringIndex(text); m != nil {
				want = m[1]
			}
			if got := fast(text); got != want {
				t.Fatalf("%s at %q: got %d, want %d", shape.pattern, text, got, want)
			}
		}
	}
	if counted < len(tokenShapes())/2 {
		t.Errorf("only %d of %d patterns are counted", counted, len(tokenShapes()))
	}
	for _, pattern := range []string{`[^a]{3}`, `[a-z]{3}?`, `[a-z]{3,4}?`, `(?:ab){3}`, `[a\x{e9}]{3}`, `a`} {
		if _, _, _, ok := classRun(pattern); ok {
			t.Errorf("%s is counted", pattern)
		}
	}
}
