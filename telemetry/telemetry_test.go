package telemetry

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

var update = flag.Bool("update", false, "write the table into docs/telemetry.md")

// Marks of the part of docs/telemetry.md that is made from the table.
const (
	docsPage  = "../docs/telemetry.md"
	docsBegin = "<!-- metrics: made by go generate ./telemetry -->\n"
	docsEnd   = "<!-- end of metrics -->\n"
)

// The documentation has the table as it is.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(page), docsBegin)
	_, after, ended := strings.Cut(rest, docsEnd)
	if !begun || !ended {
		t.Fatalf("%s has no place for the table", docsPage)
	}
	want := before + docsBegin + documented() + docsEnd + after
	if *update {
		if err := os.WriteFile(docsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Errorf("%s is not current: run go generate ./telemetry", docsPage)
	}
}

func documented() string {
	var b strings.Builder
	b.WriteString("| metric | Prometheus | kind | unit | attributes | meaning |\n|---|---|---|---|---|---|\n")
	for _, r := range Table() {
		name := r.PrometheusName()
		if r.Kind == Counter {
			name += "_total"
		}
		var attributes []string
		for _, a := range r.Attributes {
			attributes = append(attributes, "`"+string(a)+"`")
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | `%s` | %s | %s |\n", r.Name, name, r.Kind, r.Unit, strings.Join(attributes, ", "), r.Meaning)
	}
	return b.String()
}

func TestTableIsSound(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Table() {
		for _, name := range []string{r.Name, r.PrometheusName()} {
			if names[name] && name != r.Name {
				t.Errorf("%s is there twice", name)
			}
			names[name] = true
		}
		if !regexp.MustCompile(`^(gen_ai|remora|go|process)(\.[a-z0-9_]+)+$`).MatchString(r.Name) {
			t.Errorf("%q is no name of a metric", r.Name)
		}
		if r.Meaning == "" || strings.HasSuffix(r.Meaning, ".") || !slices.Contains([]Kind{Counter, Gauge, Histogram}, r.Kind) || (r.Kind == Histogram) != (len(r.Buckets) > 0) {
			t.Errorf("%s: its row is incomplete", r.Name)
		}
		if !slices.IsSorted(r.Buckets) {
			t.Errorf("%s: its buckets are not in order", r.Name)
		}
		for _, a := range r.Attributes {
			if regexp.MustCompile(`user|tenant|scope|conversation|project|app\b|key|path|header`).MatchString(string(a)) {
				t.Errorf("%s: %s may name somebody", r.Name, a)
			}
		}
	}
	if len(names) < 100 { // two for each
		t.Errorf("found %d names", len(names))
	}
}

func TestModelNamesAreBounded(t *testing.T) {
	m := Models{Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "[redacted]") }}
	for _, test := range []struct {
		model string
		admit bool
		want  string
	}{
		{"", true, ""},
		{"gpt-6", false, otherModel}, // an upstream has not accepted it
		{"gpt-6", true, "gpt-6"},
		{"gpt-6", false, "gpt-6"},
		{"anthropic/claude-5:beta", true, "anthropic/claude-5:beta"},
		{"claude-opus-5-20261101", true, "claude-opus-5-20261101"},
		{"sk-ts0ndk9llh4kc16k2d5l", true, otherModel},
		{"44051401359", true, otherModel},
		{"ba89fe5a-0ec3-236d-2086-2e12cf64fc3f", true, otherModel},
		{"my-secret-model", true, otherModel},
		{"tell me a story", true, otherModel},
		{"line\nbreak", true, otherModel},
		{strings.Repeat("a", maxModelName+1), true, otherModel},
	} {
		if got := m.Name(test.model, test.admit); got != test.want {
			t.Errorf("%q, %v: got %q, want %q", test.model, test.admit, got, test.want)
		}
	}
	distinct := map[string]bool{}
	for i := range 10 * maxModels {
		distinct[m.Name(fmt.Sprintf("model-%d", i), true)] = true
	}
	if len(distinct) != maxModels-3+1 { // three are known already, and the rest are others
		t.Errorf("got %d distinct names, want %d", len(distinct), maxModels-2)
	}
	if got := m.Name("gpt-6", true); got != "gpt-6" {
		t.Errorf("a known name has become %q", got)
	}
}

// Requests at the same time ask for names.
func TestModelNamesAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Models
		for i := range 200 {
			go m.Name(fmt.Sprintf("model-%d", i), true)
		}
		synctest.Wait()
		if len(m.known) != maxModels {
			t.Errorf("knows %d names, want %d", len(m.known), maxModels)
		}
	})
}
