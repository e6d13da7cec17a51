package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The image is built from the top-level directories that the program is made
// of. One that the allow-list of .dockerignore lacks would break the build
// where no test sees it.
func TestImageContext(t *testing.T) {
	root := filepath.Join("..", "..")
	ignore, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Fields(string(ignore))
	for _, s := range sources(t) {
		top, _, _ := strings.Cut(s.dir, "/")
		if !slices.Contains(allowed, "!"+top) {
			t.Errorf("%s is not in the build context: .dockerignore lacks !%s", s.file, top)
		}
	}
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(dockerfile)) {
		words := strings.Fields(line)
		if len(words) > 2 && words[0] == "COPY" && !strings.HasPrefix(words[1], "--") {
			for _, source := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join(root, source)); err != nil {
					t.Errorf("Dockerfile copies %s: %v", source, err)
				}
			}
		}
	}
}
