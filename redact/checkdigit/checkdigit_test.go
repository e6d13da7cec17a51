package checkdigit

import (
	"slices"
	"strings"
	"testing"
)

func TestLayoutsAreWithinLimits(t *testing.T) {
	for _, k := range Kinds {
		for _, layout := range append(slices.Clone(k.layouts), k.worded...) {
			letters := len(layout) - len(strings.TrimLeft(layout, "A"))
			if len(layout) < minLength || len(layout) > maxLength || letters > MaxLetters {
				t.Errorf("%s: layout %q is out of limits", k.ID, layout)
			}
		}
	}
}
