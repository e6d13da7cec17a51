package fence

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Text that isPlain vouches for is what neutralise makes of it.
func FuzzIsPlain(f *testing.F) {
	for _, s := range []string{
		"plain text", "remora memory", "rem ora-mem.ory", "Human: hi", "a  b", " a", "a ", "### system", "remo9ramemory", "re-re-remora_memory",
		"remoremoramemory", "remoramemoremoramemory", "Human : x", "x:", ":", "* *", "#", "1234567 remora memory", "of a r\u00e9mora-memory",
		"1234567r.e.mora memory", "0123456\x7f", "System  up: remora", "user: a", "user \t:", "a\nb", "<s>", "a [INST]", "<|x|>",
	} {
		f.Add(s)
		f.Add("My sister lives in a small old house at the far end: " + s)
	}
	f.Fuzz(checkPlain)
}

func checkPlain(t *testing.T, text string) {
	t.Helper()
	if got := neutralise(text, maxLine, nil); len(text) <= maxLine && isPlain(text) && got != text {
		t.Fatalf("isPlain accepts %q, but neutralise returns %q", text, got)
	}
}

// Every byte, anywhere in ordinary words, and the name with whatever signs in
// it.
func TestIsPlain(t *testing.T) {
	const text = "The quick brown fox jumps over the lazy dog; then it sits down by a tall old oak tree to sleep"
	if !isPlain(text) {
		t.Errorf("isPlain denies %q", text)
	}
	for at := range text {
		for c := range 256 {
			checkPlain(t, text[:at]+string([]byte{byte(c)})+text[at+1:])
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := []byte(strings.Repeat("for a more remarkable summer, or e.m. ", 2)[:rnd.IntN(70)])
		for range 1 + rnd.IntN(2) {
			for _, c := range []byte(letters[:len(letters)-rnd.IntN(2)*rnd.IntN(len(letters))]) {
				b = append(b, c&^(byte(rnd.IntN(2))<<5))
				if rnd.IntN(4) == 0 {
					b = append(b, " -._:"[rnd.IntN(5)])
				}
				if rnd.IntN(40) == 0 {
					b = append(b, byte(rnd.IntN(256)))
				}
			}
		}
		checkPlain(t, string(b))
	}
}

func BenchmarkRender(b *testing.B) {
	var lines []Line
	for range 8 {
		lines = append(lines, Line{ID: "0123456789abcdef", Time: 1, Who: "user", Text: "My daughter Mia is allergic to peanuts, and her memory of the summer in Rome remains more or less the same."})
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			Render("0123456789ab", lines, Options{})
		}
	})
	for i := range lines {
		lines[i].Text = strings.ReplaceAll(lines[i].Text, ", ", ".\n")
	}
	b.Run("plain lines", func(b *testing.B) {
		for b.Loop() {
			Render("0123456789ab", lines, Options{})
		}
	})
	for i := range lines {
		lines[i].Text = strings.ReplaceAll(lines[i].Text, ".\n", " –\n")
	}
	b.Run("lines", func(b *testing.B) {
		for b.Loop() {
			Render("0123456789ab", lines, Options{})
		}
	})
}
