package api_test

import (
	"bytes"
	"flag"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
)

var update = flag.Bool("update", false, "rewrite reference.html")

// contract returns the contract, which must be valid.
func contract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.Contract)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestReference(t *testing.T) {
	page, err := template.New("reference.tmpl").Funcs(template.FuncMap{
		"anchor": anchor, "paragraphs": paragraphs, "type": typeOf,
	}).ParseFiles(filepath.Join("testdata", "reference.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, referenceOf(contract(t))); err != nil {
		t.Fatal(err)
	}
	want, have := b.Bytes(), api.Reference
	if *update {
		if err := os.WriteFile("reference.html", want, 0o644); err != nil {
			t.Fatal(err)
		}
		have = want
	}
	if diff := cmp.Diff(string(want), string(have)); diff != "" {
		t.Errorf("reference.html is stale, run go generate ./api (-want +got):\n%s", diff)
	}
}

// The policy of the route that serves the page allows inline styles and nothing
// else.
func TestReferenceNeedsNothingElse(t *testing.T) {
	text := string(api.Reference)
	for name, banned := range map[string]string{
		"a script":            `(?i)<script|javascript:|\son\w+\s*=`,
		"something to load":   `(?i)\s(src|srcset|action)\s*=|<link|<img|<iframe|<form|@import|url\(`,
		"an inline attribute": `(?i)\sstyle\s*=`,
	} {
		if found := regexp.MustCompile(banned).FindString(text); found != "" {
			t.Errorf("the page has %s: %q", name, found)
		}
	}
	ids := map[string]int{}
	for _, m := range regexp.MustCompile(`\sid="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]]++; ids[m[1]] > 1 {
			t.Errorf("two elements have the id %q", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if id, internal := strings.CutPrefix(m[1], "#"); internal && ids[id] == 0 {
			t.Errorf("a link leads to %q, which is not there", m[1])
		} else if !internal && m[1] != "openapi.yaml" {
			t.Errorf("a link leads out of the page: %q", m[1])
		}
	}
	for path, item := range contract(t).Paths.Map() {
		for _, operation := range item.Operations() {
			if ids[operation.OperationID] == 0 {
				t.Errorf("%s has no place on the page", path)
			}
		}
	}
}

// The objects of the contract are closed where the Go types are: a member that
// is not described is a mistake of the contract, not freedom of the server.
func TestContractIsClosed(t *testing.T) {
	for name, schema := range contract(t).Components.Schemas {
		if !schema.Value.Type.Is("object") {
			continue
		}
		if has := schema.Value.AdditionalProperties.Has; has == nil || *has {
			t.Errorf("%s allows members that are not described", name)
		}
		for _, member := range schema.Value.Required {
			if schema.Value.Properties[member] == nil {
				t.Errorf("%s requires %s, which it does not have", name, member)
			}
		}
	}
}
