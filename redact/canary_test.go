package redact

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// canary is a text with something that a rule finds. The test of the whole
// program plants canaries and searches for them.
type canary struct {
	Rule  string `json:"rule"`
	Text  string `json:"text"`
	Value string `json:"value"` // what must not remain
}

// TestCanaries keeps testdata/canaries.json, which has one for every rule.
func TestCanaries(t *testing.T) {
	all := newRedactor(t)
	var canaries []canary
	for _, rule := range Rules() {
		text := exampleOf(t, all, rule)
		_, found := all.Redact(text)
		i := max(0, slices.IndexFunc(found, func(f Finding) bool { return f.Rule == rule.ID }))
		canaries = append(canaries, canary{rule.ID, text, text[found[i].Start:found[i].End]})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(canaries); err != nil {
		t.Fatal(err)
	}
	const name = "testdata/canaries.json"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s is out of date, run go test -update (-want +got):\n%s", name, diff)
	}
}
