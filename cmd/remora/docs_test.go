package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the documents call a setting is one: a reader who takes it over would be told of an unknown key.
func TestDocumentsNameSettings(t *testing.T) {
	c := defaultConfig()
	var keys []string
	sections := map[string]bool{}
	for _, s := range c.settings() {
		keys = append(keys, s.key)
		if section, _, nested := strings.Cut(s.key, "."); nested {
			sections[section] = true
		}
	}
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	name := regexp.MustCompile("`([a-z][a-zA-Z]*)\\.([a-z][a-zA-Z.]*)(: [^`]*)?`")
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		every := filepath.Base(file) == "problems.md" // which has no other names with dots
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			key := m[1] + "." + m[2]
			known := slices.ContainsFunc(keys, func(k string) bool { return k == key || strings.HasPrefix(k, key+".") })
			if !known && (every || sections[m[1]]) {
				t.Errorf("%s: there is no setting %s", filepath.Base(file), key)
			}
		}
	}
}
