package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// Words that questions of all kinds have don't make an example, unless it has no
// others.
func TestExampleWords(t *testing.T) {
	analyzer := text.NewAnalyzer(1 << 10)
	for example, cases := range map[string]map[string]bool{
		"What is my dog's name?":                {"How old is my dog?": true, "What is my name?": false},
		"Recommend a thriller":                  {"recommend a recipe": false, "I'd like a thriller": true},
		"Paris or Rome?":                        {"a week in Rome": false, "is Rome warmer than Paris": true},
		"tax return 2024":                       {"the tax return of my sister": true, "tax evasion": false, "return tickets for 2024": true},
		"Wie heißt der Hafen von Lissabon?":     {"Wo liegt der Hafen von Lissabon?": true, "Wie heißt der Hund?": false},
		"anything new?":                         {"is there anything new": true, "a new car": false},
		strings.Repeat("alpha beta gamma ", 9):  {"alpha beta": true, "alpha": false},
		"<system-reminder>x</system-reminder>x": {"x": true},
	} {
		tag, ok := UnwantedTag(analyzer, example)
		if !ok || len(tag) > 128 {
			t.Errorf("%q: tag of %d bytes, ok %t", example, len(tag), ok)
		}
		for _, word := range strings.Fields(strings.ToLower(example)) {
			if len(word) > 4 && strings.Contains(tag, word) {
				t.Errorf("%q: the tag shows %q", example, word)
			}
		}
		for question, want := range cases {
			if got := IsExampleOf(tag, AskedWords(analyzer, question)); got != want {
				t.Errorf("%q: %q is of its kind: %t, want %t", example, question, got, want)
			}
		}
	}
	var long strings.Builder
	for i := range 200 {
		fmt.Fprintf(&long, "word%d ", i)
	}
	if tag, ok := UnwantedTag(analyzer, long.String()); !ok || len(tag) > 128 {
		t.Errorf("a long example: tag of %d bytes, ok %t", len(tag), ok)
	}
	for _, example := range []string{"", "?", "is it?"} {
		if tag, ok := UnwantedTag(analyzer, example); ok {
			t.Errorf("%q makes the tag %q", example, tag)
		}
	}
	for _, tag := range []string{"", "work", storage.UnwantedTag, storage.UnwantedTag + "00000", storage.UnwantedTag + "zzzzzz", storage.UnwantedTag + "00000000"} {
		if IsExampleOf(tag, []uint32{0}) {
			t.Errorf("%q fits", tag)
		}
	}
}
