package redact

import (
	"slices"
	"strings"
	"testing"
)

func TestWordDataIsValid(t *testing.T) {
	roles := strings.Fields("password pin code key copula after as filler into and open block change object other")
	seen := map[string]bool{}
	for column := range rows(wordData) {
		if len(column) != 4 || !slices.Contains(roles, column[0]) || !slices.Contains([]string{"", "compound", "zero", "own"}, column[1]) || column[2] == "" {
			t.Fatalf("row %q", column)
		}
		for word := range strings.SplitSeq(column[3], ",") {
			if word == "" || word != strings.TrimSpace(strings.ToLower(word)) {
				t.Errorf("%q of row %q", word, column)
			}
			if key := column[0] + " " + column[2] + " " + word; seen[key] {
				t.Errorf("%q is there twice", key)
			} else {
				seen[key] = true
			}
		}
	}
}
