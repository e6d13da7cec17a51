package problem

import (
	"os"
	"strings"
	"testing"
)

// The type of a problem is a link; it must lead somewhere.
func TestProblemsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range titles {
		if !strings.Contains(string(page), `<a id="`+kind+`"></a>`) {
			t.Errorf("docs/problems.md says nothing of %s", kind)
		}
	}
	if got, want := strings.Count(string(page), "<a id="), len(titles); got != want {
		t.Errorf("docs/problems.md tells of %d problems, want %d", got, want)
	}
}
