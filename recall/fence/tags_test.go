package fence

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the scan must find, as regular expressions.
var (
	tagExpr    = regexp.MustCompile(`(?i)(?:<|&lt;|\\u003c)\s*(/?)\s*` + name + `([0-9a-f]{8,64})\s*(?:>|&gt;|\\u003e)`)
	cutTagExpr = regexp.MustCompile(`(?i)(?:<|&lt;|\\u003c)\s*/?\s*` + name + `[0-9a-f]{0,64}\s*$`)
)

func tagsByExpr(text string) []tag {
	var tags []tag
	for _, m := range tagExpr.FindAllStringSubmatchIndex(text, -1) {
		tags = append(tags, tag{start: m[0], end: m[1], closing: m[2] < m[3], idStart: m[4], idEnd: m[5]})
	}
	return tags
}

func cutAtByExpr(text string) int {
	end := strings.TrimRight(text, " \t\r\n\f\v")
	from := max(0, len(end)-256)
	if c := cutTagExpr.FindStringIndex(end[from:]); c != nil {
		return from + c[0]
	}
	return -1
}

func checkTags(t *testing.T, text string) {
	t.Helper()
	if diff := cmp.Diff(tagsByExpr(text), allTags(text), cmp.AllowUnexported(tag{})); diff != "" {
		t.Errorf("tags of %q (-want +got):\n%s", text, diff)
	}
	if want, got := cutAtByExpr(text), cutAt(text); got != want {
		t.Errorf("%q: cut at %d, want %d", text, got, want)
	}
	if want := tagExpr.MatchString(text) || mayContain(text) && cutAtByExpr(text) >= 0; Contains(text) != want {
		t.Errorf("%q: Contains is not %v", text, want)
	}
}

// tagPieces are the parts of tags and of what is nearly one.
var tagPieces = []string{
	"<", ">", "/", "&lt;", "&GT;", "&gt;", "&Lt;", "&lt", "gt;", `\u003c`, `\U003C`, `\u003e`, `\u003E`, `\u003d`, `\`, "&", ";",
	"remora-memory-", "Remora-MEMORY-", "remora-memory", "remora-", "memory-", "-", "remora_memory-", "remorа-memory-",
	"0123456789ab", "0123456", "01234567", "ABCDEF01", strings.Repeat("a", 63), strings.Repeat("b", 64), "c", "g",
	" ", "\n", "\t", "\v", "\f", "\r", "\u00a0", "\x80", strings.Repeat(" ", 250), "word", "<remora-memory-", "</remora-memory-",
	"<remora-memory-0123456789ab>", "</remora-memory-0123456789ab>",
}

func TestTagsMatchTheExpression(t *testing.T) {
	for _, p := range tagPieces {
		checkTags(t, p)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 10_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(12) {
			b.WriteString(tagPieces[rnd.IntN(len(tagPieces))])
		}
		if allTags(b.String()) != nil {
			found++
		}
		checkTags(t, b.String())
		if t.Failed() {
			return
		}
	}
	if found < 100 {
		t.Errorf("only %d of the texts have tags", found)
	}
}

func FuzzTags(f *testing.F) {
	for _, p := range tagPieces {
		f.Add(p)
		f.Add("<" + p + "remora-memory-" + p + "0123456789ab" + p + ">")
	}
	f.Fuzz(checkTags)
}

// Strip takes linear time for a text full of what is nearly a tag. If every
// name cost a walk of its own, this would take minutes.
func TestStripOfNearlyTags(t *testing.T) {
	for _, p := range []string{
		"<remora-memory-", "remora-memory-", "</", "-", "<remora-memory-0", "<   remora-memory-   ", "<remora-memory-0123456789ab",
		"<remora-memory-" + strings.Repeat("a", 65), Rule + "\n", Rule + " ", "> " + Rule, Rule[:len(Rule)-1],
	} {
		text := strings.Repeat(p, 4<<20/len(p)) + "."
		if got := Strip(text); got != text { // the dot keeps the last from being a tag that is cut off
			t.Errorf("%q: %d bytes are left of %d", p, len(got), len(text))
		}
	}
	// Blocks without an end, on one long line.
	const tag = "<remora-memory-0123456789ab>x"
	if got := Strip(strings.Repeat(tag, 4<<20/len(tag))); strings.Trim(got, "x") != "" {
		t.Errorf("of %q %d bytes are left", tag, len(got))
	}
	const cut = " <remora-memory-"
	if got := Strip(strings.Repeat(cut, 100)); strings.TrimSpace(got) != "" {
		t.Errorf("%q is left of tags that are cut off", got)
	}
}
