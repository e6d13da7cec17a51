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

// The kinds that traffic meets are those of the page's first table. A WebSocket
// that is sent back to HTTP has not failed.
func TestKindsOfTraffic(t *testing.T) {
	page, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(page), "\n## ")
	got := map[string]int64{}
	new(Counts).AddTo(got)
	for kind := range titles {
		_, counted := got[kind]
		if want := strings.Contains(first, `<a id="`+kind+`"></a>`) && kind != "websocket-fallback"; counted != want {
			t.Errorf("%s: counted %t, want %t", kind, counted, want)
		}
	}
	var c Counts
	c.Add("upstream-tls")
	c.Add("upstream-tls")
	c.Add("503")
	if c.AddTo(got); got["upstream-tls"] != 2 || got["503"] != 1 || got["bad-target"] != 0 {
		t.Errorf("got %v", got)
	}
}
