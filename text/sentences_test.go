package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSentences(t *testing.T) {
	for in, want := range map[string][]string{
		"I moved. Did you? Yes!":                          {"I moved.", "Did you?", "Yes!"},
		"one\ntwo\r\n three ":                             {"one", "two", "three"},
		"Dr. Lee lives at 5 St. Mary St. in Bath.":        {"Dr. Lee lives at 5 St. Mary St. in Bath."},
		"We meet on the 3. März, e.g. at noon. Fine.":     {"We meet on the 3. März, e.g. at noon.", "Fine."},
		"It costs 3.50 at example.com. So did I. J. Doe.": {"It costs 3.50 at example.com.", "So did I.", "J. Doe."},
		`Julia wrote: "I got it! I start in May." Great.`: {`Julia wrote: "I got it! I start in May."`, "Great."},
		`A 5" by 7" print. Two.`:                          {`A 5" by 7" print.`, "Two."},
		"今日は。明日も！":                                        {"今日は。", "明日も！"},
		"「行く。」と言った。はい。":                                   {"「行く。」と言った。", "はい。"},
		" \n ": nil,
	} {
		var got []string
		for i, s := range Sentences(in) {
			if i != len(got) {
				t.Errorf("%q: sentence %d has number %d", in, len(got), i)
			}
			got = append(got, s)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", in, d)
		}
	}
}

// Nothing but space is lost between sentences.
func FuzzSentences(f *testing.F) {
	f.Add(`He said “no. I can't.” Then: "5" by 7". «Oui. Non.» 3. März. z.B. x`)
	f.Add("No. He said.” \u2004\x84 ") // a stray byte, which is also the last of the space before it
	f.Fuzz(func(t *testing.T, s string) {
		rest := s
		for _, sentence := range Sentences(s) {
			after, ok := strings.CutPrefix(strings.TrimSpace(rest), sentence)
			if !ok {
				t.Fatalf("%q: sentence %q does not begin %q", s, sentence, rest)
			}
			rest = after
		}
		if strings.TrimSpace(rest) != "" {
			t.Fatalf("%q: %q is in no sentence", s, rest)
		}
	})
}

func TestAppendFolded(t *testing.T) {
	for in, want := range map[string]string{"Straße": "strasse", "ÉTÉ d’Œuvre": "ete d'oeuvre", "e\u0301": "e", "Москва 東京": "москва 東京"} {
		if got := string(AppendFolded(nil, in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for i := 0; i < len(accented); i += 2 {
		if got := unaccented(accented[i]); got != accented[i+1] || !slices.Equal(AppendFolded(nil, accented[i]), []byte(got)) {
			t.Errorf("%s: unaccented %q, folded %q, want %q", accented[i], got, AppendFolded(nil, accented[i]), accented[i+1])
		}
	}
}
