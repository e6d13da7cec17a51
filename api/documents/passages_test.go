package documents

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestPassages(t *testing.T) {
	for _, c := range []struct {
		name, mediaType, text string
		limit                 int
		want                  []string
	}{
		{"one paragraph", Plain, "\n  Hello there.\n\n", 64, []string{"Hello there."}},
		{"nothing", Markdown, " \n\t\n", 64, nil},
		{"small paragraphs are joined", Plain, "One.\n\nTwo.\n\n\n\nThree.", 64, []string{"One.\n\nTwo.\n\nThree."}},
		{"as far as they fit", Plain, "One one.\n\nTwo two.\n\nThree three.", 20, []string{"One one.\n\nTwo two.", "Three three."}},
		{"headings", Markdown, "intro\n# Setup\nfirst\n\nsecond\n## Keys ##\nthird\n# Use\nfourth", 64,
			[]string{"intro", "Setup: first\n\nsecond", "Setup > Keys: third", "Use: fourth"}},
		{"underlined headings", Markdown, "Setup\n===\nfirst\nKeys\n---\nsecond\n\n---\n\nthird", 64,
			[]string{"Setup: first\nKeys\n\nsecond\n\nthird"}},
		{"an underlined heading after a blank line", Markdown, "Setup\n===\nfirst\n\nKeys\n---\nsecond", 64,
			[]string{"Setup: first", "Setup > Keys: second"}},
		{"each passage has its headings", Markdown, "# Setup\nOne two three. Four five six. Seven eight nine.", 32,
			[]string{"Setup: One two three.", "Setup: Four five six.", "Setup: Seven eight nine."}},
		{"headings above nothing", Markdown, "# A\n## B\n# C\n### D", 64, []string{"A > B", "C > D"}},
		{"headings without room", Markdown, "# Aaaaaaaa\n## Bbbbbbbb\n### Cc\nword word", 24,
			[]string{"Aaaaaaaa", "Bbbbbbbb", "Cc: word word"}},
		{"the inner headings if all don't fit", Markdown, "# Aaaaaaaa\ntext\n## Bbbb\nword word", 24,
			[]string{"Aaaaaaaa: text", "Bbbb: word word"}},
		{"no heading in plain text", Plain, "# one\n## two\nthree", 64, []string{"# one\n## two\nthree"}},
		{"no heading in code", Markdown, "# A\n```\n# b\n\nc\n```", 64, []string{"A: \n```\n# b\n\nc\n```"}},
		{"code is kept whole", Markdown, "Words here.\n\n~~~\na b\n\nc d\n~~~\n\nMore words.", 20,
			[]string{"Words here.", "~~~\na b\n\nc d\n~~~", "More words."}},
		{"code that doesn't fit is split at lines", Markdown, "```\n  aaaa bbbb\n  cccc dddd\n  eeee ffff\n```", 28,
			[]string{"```\n  aaaa bbbb\n  cccc dddd", "  eeee ffff\n```"}},
		{"sentences", Plain, "Dr. Who met J. Doe at 3.5 p.m. there. Then both left! Really?", 48,
			[]string{"Dr. Who met J. Doe at 3.5 p.m. there.", "Then both left! Really?"}},
		{"sentences without blanks", Plain, "我喜欢茶。他喜欢咖啡。", 24, []string{"我喜欢茶。", "他喜欢咖啡。"}},
		{"items", Markdown, "- one two\n- three four\n- five six", 24, []string{"- one two\n- three four", "- five six"}},
		{"words", Plain, "alpha beta gamma delta", 12, []string{"alpha beta", "gamma delta"}},
		{"characters", Plain, "ééééé", 4, []string{"éé", "éé", "é"}},
		{"the least limit", Plain, "a😀b", 0, []string{"a", "😀", "b"}},
		{"front matter", Markdown, "---\nauthor: me\n---\n# A\nb", 64, []string{"author: me", "A: b"}},
		{"invalid UTF-8", Plain, "a\xff\xffb", 4, []string{"a\ufffd", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Document{MediaType: c.mediaType, Text: c.text}
			if diff := cmp.Diff(c.want, Passages(d, c.limit)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			checkPassages(t, d, c.limit)
		})
	}
}

// checkPassages reports passages that are empty or too long, and characters of
// words that none has in order. Passages repeat headings and may split words, so
// words are compared without what is between them.
func checkPassages(t *testing.T, d Document, limit int) {
	t.Helper()
	passages := Passages(d, limit)
	var have []rune
	for _, p := range passages {
		if len(p) > max(limit, utf8.UTFMax) || strings.TrimSpace(p) == "" || !utf8.ValidString(p) {
			t.Fatalf("limit %d: passage %q", limit, p)
		}
		have = append(have, letters(p)...)
	}
	for _, r := range letters(clean(d.Text)) {
		for len(have) > 0 && have[0] != r {
			have = have[1:]
		}
		if len(have) == 0 {
			t.Fatalf("limit %d: no passage has %q of %q", limit, r, d.Text)
		}
		have = have[1:]
	}
}

func letters(s string) (all []rune) {
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			all = append(all, r)
		}
	}
	return all
}

// Words that fit are never split: as many come out, in order, and whole.
func TestPassagesHaveEveryWord(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"\n", "\n\n", "\n# ", "\n## ", "\n###### ", "\n```\n", "\n~~~\n", "\n- ", "\n1. ", "\n| ", ". ", "! ", "? ", " ", " ", " ", "\t", "\n---\n", "\n===\n", "\n> ", "。"}
	for n := range 3000 {
		var b strings.Builder
		var want []string
		for range random.IntN(120) {
			word := strings.Repeat([]string{"a", "é", "Z", "字"}[random.IntN(4)], 1+random.IntN(4)) + string(rune('a'+len(want)%26))
			want = append(want, word)
			b.WriteString(word + parts[random.IntN(len(parts))])
		}
		d := Document{MediaType: []string{Plain, Markdown, HTML, PDF}[n%4], Text: b.String()}
		limit := 32 + random.IntN(96)
		checkPassages(t, d, limit)
		var have []string
		for _, p := range Passages(d, limit) {
			have = append(have, strings.FieldsFunc(p, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
		}
		for _, w := range want {
			for len(have) > 0 && have[0] != w {
				have = have[1:]
			}
			if len(have) == 0 {
				t.Fatalf("limit %d: no passage has %q of %q:\n%q", limit, w, d.Text, Passages(d, limit))
			}
			have = have[1:]
		}
	}
}

// A long heading above very many short sections is not repeated for all.
func TestPassagesDontMultiply(t *testing.T) {
	text := "# " + strings.Repeat("long ", 100) + "\n" + strings.Repeat("## x\n", 100_000) + strings.Repeat("## x\ny\n", 100_000)
	size := 0
	for _, p := range Passages(Document{MediaType: Markdown, Text: text}, 1024) {
		size += len(p)
	}
	if size > (maxRepeated+2)*len(text) {
		t.Errorf("%d bytes of passages for %d of text", size, len(text))
	}
}
