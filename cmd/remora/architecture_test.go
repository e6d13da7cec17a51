package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesNameTests keeps docs/ARCHITECTURE.md, docs/security.md and
// docs/threat-model.md true: each test that they name as holding a guarantee
// exists, and so does each file that they point to.
func TestGuaranteesNameTests(t *testing.T) {
	root := filepath.Join("..", "..")
	var names []string
	for _, s := range testSources(t) {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)`).FindAllStringSubmatch(s, -1) {
			names = append(names, m[1])
		}
	}
	all := " " + strings.Join(names, " ")
	for _, name := range []string{"docs/ARCHITECTURE.md", "docs/security.md", "docs/threat-model.md"} {
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z]\w*)(\*?)`).FindAllStringSubmatch(string(page), -1)
		if len(named) < 40 {
			t.Fatalf("found %d tests named in %s: reading the wrong page", len(named), name)
		}
		for _, m := range named {
			end := " "
			if m[2] == "*" {
				end = ""
			}
			if !strings.Contains(all+" ", " "+m[1]+end) {
				t.Errorf("%s names %s, which does not exist", name, m[0])
			}
		}
		for _, m := range regexp.MustCompile("`([a-z]+/[a-z/-]*[a-z_]*(?:\\.go)?)`").FindAllStringSubmatch(string(page), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil && m[1] != "net/http" && m[1] != "n/a" {
				t.Errorf("%s points to %s, which does not exist", name, m[1])
			}
		}
	}
}

// testSources returns the text of every _test.go file of the project.
func testSources(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(filepath.Join("..", ".."), func(name string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != filepath.Join("..", "..") && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		all = append(all, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
