package telemetry

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

var update = flag.Bool("update", false, "write the tables into docs/telemetry.md")

// docsPage has parts that are made from the tables, between marks.
const docsPage = "../docs/telemetry.md"

// The documentation has the tables as they are.
func TestDocs(t *testing.T) {
	raw, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, part := range []struct{ name, table string }{{"spans", documentedSpans()}, {"metrics", documented()}} {
		begin, end := "<!-- "+part.name+": made by go generate ./telemetry -->\n", "<!-- end of "+part.name+" -->\n"
		before, rest, begun := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		if !begun || !ended {
			t.Fatalf("%s has no place for the table of %s", docsPage, part.name)
		}
		page = before + begin + part.table + end + after
	}
	if *update {
		if err := os.WriteFile(docsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if page != string(raw) {
		t.Errorf("%s is not current: run go generate ./telemetry", docsPage)
	}
}

func documentedSpans() string {
	var b strings.Builder
	b.WriteString("| span | kind | attribute | set if | meaning |\n|---|---|---|---|---|\n")
	for _, s := range Spans() {
		span, kind := "`"+s.Name+s.More+"`", s.Kind.String()
		for _, a := range s.Attributes {
			fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s |\n", span, kind, a.Key, cmp.Or(a.When, "always"), a.Meaning)
			span, kind = "", ""
		}
	}
	return b.String()
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

// No attribute of a span names somebody or holds content, and of those of the
// conventions for memory only the count is there.
func TestSpansAreSound(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Spans() {
		if names[s.Name] || s.Kind == trace.SpanKindUnspecified {
			t.Errorf("%s is there twice, or of no kind", s.Name)
		}
		names[s.Name] = true
		keys := map[attribute.Key]bool{}
		for _, a := range s.Attributes {
			if keys[a.Key] || a.Meaning == "" || strings.HasSuffix(a.Meaning, ".") {
				t.Errorf("%s: %s is there twice, or incomplete", s.Name, a.Key)
			}
			keys[a.Key] = true
			if regexp.MustCompile(`user|tenant|scope|conversation|project|app\b|key|path|header|text|messages|records|instructions|arguments|result`).MatchString(string(a.Key)) {
				t.Errorf("%s: %s may name somebody or hold content", s.Name, a.Key)
			}
			if !regexp.MustCompile(`^(gen_ai|remora|server|http|error)(\.[a-z0-9_]+)+$`).MatchString(string(a.Key)) ||
				strings.HasPrefix(string(a.Key), "gen_ai.memory.") && a.Key != "gen_ai.memory.record.count" {
				t.Errorf("%s: %q is no name of an attribute", s.Name, a.Key)
			}
		}
		if !keys[AttrOperation] || !keys[AttrError] {
			t.Errorf("%s lacks an attribute that the conventions require", s.Name)
		}
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
