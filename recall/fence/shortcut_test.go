package fence

import (
	"strings"
	"testing"
)

// longWay is Neutralise without its short cut.
func longWay(s string, limit int) string {
	lines := visibleLines(s, limit)
	for i, l := range lines {
		lines[i] = defuseRoleLine(l)
	}
	return cut(strings.TrimSpace(defuseName(defuseTokens(strings.Join(lines, " ")))), limit)
}

// The short cut gives what the long way gives.
func FuzzShortcut(f *testing.F) {
	for _, s := range []string{
		"plain text", "remora memory", "rem ora-mem.ory", "Human: hi", "a  b", " a", "a ", "### system", "remo9ramemory", "re-re-remora_memory",
		"one\ntwo", "\n\n one \r\n\ttwo  ", "hi\nHuman: x\n- system: y", "r\ne\nm\no\nr\na\nmemory", "rémörâ-mémôrÿ-", "it’s “so” – é", "Ã—\u00d7", "x:\n:",
		"\u2028a", "\u2039/s\u203a", "* *", "#\n#", "1234567 remora memory", "of a r\u00e9mora-memory", "1234567r.e.mora memory", "1234567  9", "1234567 ", "12345678 ", "0123456\x7f", "012345\x1f7",
		"System  up: remora", "one\ntwo remora\nmemory", "first\n\nHuman: x\n## two", "\none", "one\n", "\n\n", "one\n two", "user:\n: x", "# \n#", "user: a\nuser b", "So it is: tool", "user \t:", "\xc3", "\xe2\x80",
	} {
		f.Add(s)
		f.Add("My sister lives in a small old house at the far end: " + s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkShortcut(t, s)
	})
}

// Ordinary text takes the short cut.
func TestShortcutTaken(t *testing.T) {
	for _, s := range []string{"Our on-call roster", "My mémoire: “très bien” – isn’t it?", "one\n\ntwo\r\n  three", "Human: hi", "a\tb"} {
		if _, ok := shortcut(s, maxLine); !ok {
			t.Errorf("%q goes the long way", s)
		}
	}
	for _, s := range []string{"<s>", "remora-memory", "rémora memory", "a\x1b[0m", "ремора", "zero\u200bwidth", "a [INST]"} {
		if _, ok := shortcut(s, maxLine); ok {
			t.Errorf("%q takes the short cut", s)
		}
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
