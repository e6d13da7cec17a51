package dialect

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	documented = regexp.MustCompile("(?s)```diff ([a-z ]+)\n(.*?)\n```")
	insertedIn = regexp.MustCompile(`"(<remora-memory(?:[^"\\]|\\.)*)"`)
)

// TestDocumentedInsertions makes each request of docs/protocols.md that is
// shown as a difference: the lines without a plus are what a client sends, all
// lines together what the upstream gets.
func TestDocumentedInsertions(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocols.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, m := range documented.FindAllSubmatch(page, -1) {
		var sent, want bytes.Buffer
		for line := range strings.SplitSeq(string(m[2]), "\n") {
			want.WriteString(line[1:])
			if line[0] != '+' {
				sent.WriteString(line[1:])
			}
		}
		var block string
		if err := json.Unmarshal(insertedIn.Find(want.Bytes()), &block); err != nil {
			t.Fatalf("%s: no block: %v", m[1], err)
		}
		for _, d := range dialects {
			if !strings.Contains(" "+string(m[1])+" ", " "+d.Name()+" ") {
				continue
			}
			shown[d.Name()] = true
			request, err := d.Parse(sent.Bytes())
			if err != nil {
				t.Fatalf("%s: %v", d.Name(), err)
			}
			insertions, err := d.Insert(request, request.Turn, BeforeUser, block)
			if err != nil {
				t.Fatalf("%s: %v", d.Name(), err)
			}
			got := compacted(t, bytes.Join(Splice(sent.Bytes(), insertions), nil))
			if want := compacted(t, want.Bytes()); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", d.Name(), got, want)
			}
		}
	}
	for _, d := range dialects {
		if !shown[d.Name()] {
			t.Errorf("docs/protocols.md has no example of %s", d.Name())
		}
	}
}

func compacted(t *testing.T, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return b.String()
}
