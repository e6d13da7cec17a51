package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentsNameSettings checks that settings named in the documents exist:
// readers copy them into their files.
func TestDocumentsNameSettings(t *testing.T) {
	c := Default()
	var keys []string
	sections := map[string]bool{}
	for _, s := range c.settings() {
		keys = append(keys, s.key)
		if section, _, nested := strings.Cut(s.key, "."); nested {
			sections[section] = true
		}
	}
	root := filepath.Join("..", "..", "..")
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	name := regexp.MustCompile("`([a-z][a-zA-Z]*)\\.([a-z][a-zA-Z.]*)(: [^`]*)?`")
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		every := filepath.Base(file) == "problems.md" // it has no other names with dots
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			key := m[1] + "." + m[2]
			known := slices.ContainsFunc(keys, func(k string) bool { return k == key || strings.HasPrefix(k, key+".") })
			host := strings.HasSuffix(key, ".com")
			if !known && !host && (every || sections[m[1]]) {
				t.Errorf("%s: there is no setting %s", filepath.Base(file), key)
			}
		}
	}
}

// TestImageNamesSettings checks that the variables that the Dockerfile sets
// exist.
func TestImageNamesSettings(t *testing.T) {
	c := Default()
	variables := knownVariables(c.settings())
	dockerfile, err := os.ReadFile(filepath.Join("..", "..", "..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(dockerfile)) {
		for word := range strings.FieldsSeq(line) {
			name, _, ok := strings.Cut(word, "=")
			if ok && strings.HasPrefix(name, "REMORA_") && !strings.HasPrefix(line, "#") && !slices.Contains(variables, name) {
				t.Errorf("Dockerfile sets %s, which is not a setting", name)
			}
		}
	}
}
