package extract

import (
	stdcmp "cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestIdeographsAreWords checks that each character is a word, whatever is next
// to it, and that long sentences are not taken for data.
func TestIdeographsAreWords(t *testing.T) {
	for text, want := range map[string][]string{
		"我用Go写代码。":              {"我", "用", "go", "写", "代", "码"},
		"請ignore，好。":            {"請", "ignore", "好"},
		"コーヒー":                  {"コ", "ー", "ヒ", "ー"},
		"한국어 문장":                {"한국어", "문장"},
		strings.Repeat("字", 40): slices.Repeat([]string{"字"}, 40),
	} {
		var got []string
		for _, w := range words(text) {
			got = append(got, w.folded)
			if text[w.start:w.end] != w.raw {
				t.Errorf("%q: %q has the wrong position", text, w.raw)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
	for text, want := range map[string]bool{"我住在上海": true, "横浜です": true, "I live in 東京 now": false, "the word 好 means good": false, "한국어": false, "": false, "plain": false} {
		if got := hasIdeographs(text); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// TestIdeographicNoise has sentences that resemble statements of the user.
func TestIdeographicNoise(t *testing.T) {
	for _, s := range []string{
		"我喜欢这个方案。", "我觉得可以。", "我不用了。", "我爱你。", "他住在北京。", "我住在哪里比较好？", "我叫你停下。你听到了吗？", "今天我很忙。", "我在家里做饭。", "他的名字是李明。",
		"彼は医者です。", "これが好きです。", "私は行きたいです。", "犬が好きですか？", "母は寝ています。", "東京に行きました。", "翻訳してください：私は学生です。",
	} {
		for _, sp := range spansOf(s, time.Now(), 0) {
			if sp.candidate != nil {
				t.Errorf("%q: %q is taken for a statement", s, sp.candidate.Quote)
			}
		}
	}
}

// FuzzSpans checks that a candidate has words, and that the message holds its
// quotation.
func FuzzSpans(f *testing.F) {
	for _, file := range []string{"tuning.txt", "strangers-a.txt", "chinese-japanese.txt"} {
		raw, err := os.ReadFile(filepath.Join("..", "testdata", "audit", file))
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			f.Add(strings.TrimSpace(strings.TrimLeft(line, "+-~ ")))
		}
	}
	f.Add("请记住：x")
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		orders(text)
		for _, sp := range spansOf(text, at, 0) {
			c := sp.candidate
			if c == nil {
				continue
			}
			if len(c.words) == 0 || !strings.Contains(text, c.Quote) {
				t.Fatalf("%q: took %q", text, c.Quote)
			}
			quote, _, quoted := Quotation(c.Text())
			if !quoted || normalised(words(quote)) != normalised(words(strings.ReplaceAll(stdcmp.Or(c.named, c.Quote), `"`, `'`))) {
				t.Fatalf("%q: stored as %q", c.Quote, c.Text())
			}
		}
	})
}
