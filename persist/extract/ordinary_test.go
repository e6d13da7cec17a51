package extract

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOrdinarySentences has asides, single requests and generalities, which
// look much like what is to be kept.
func TestOrdinarySentences(t *testing.T) {
	for text, want := range map[string][]string{
		// a requested text is fiction, what is said before is not
		"Our Mia was born on May 3. Write a poem about it.":    {"Our Mia was born on May 3."},
		"Remember that I live in Rome. Write a poem about it.": {"I live in Rome."},
		"Write a story about a dragon. I am allergic to nuts.": nil,
		"Schreib mir eine Geschichte. Ich wohne in Kiel.":      nil,
		// what is handed over is no statement, what is said with it may be one
		"Here is the thing, I am vegan.":             {"I am vegan."},
		"Hier ist es kalt, ich wohne in Oslo.":       {"ich wohne in Oslo."},
		"Here is my letter.":                         nil,
		"Below is my CV. I live in Kiel.":            {"I live in Kiel."},
		"Here is my letter, I wrote it for my boss.": nil,
		// once, or always
		"Bitte sag mir, warum das nie funktioniert.":       nil,
		"Bitte hilf mir, ich habe das noch nie gemacht.":   nil,
		"Bitte erkläre mir, wann man immer groß schreibt.": nil,
		"Bitte antworte mir immer auf Deutsch.":            {"Bitte antworte mir immer auf Deutsch."},
		"Schick mir bitte nie Links.":                      {"Schick mir bitte nie Links."},
		"use pytest but do not change anything":            nil,
		"Use Docker but don't commit.":                     nil,
		"use sed, don't ask":                               nil,
		"use 4 spaces, not tabs":                           {"use 4 spaces, not tabs"},
		// people, and generalities
		"Everybody loves pizza.":           nil,
		"Jeder liebt Pizza.":               nil,
		"Man isst hier spät.":              nil,
		"Deutschland ist gegen das Gesetz": nil,
		"Lena ist gegen Nüsse allergisch.": {"Lena ist gegen Nüsse allergisch."},
		"Lena mag keinen Fisch.":           {"Lena mag keinen Fisch."},
		"I am OK":                          nil,
		"I'm Anna":                         {"I'm Anna"},
	} {
		var got []string
		for _, sp := range spansOf(text, time.Now(), 0) {
			if sp.candidate != nil {
				got = append(got, sp.candidate.Quote)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s", text, cmp.Diff(want, got))
		}
	}
}
