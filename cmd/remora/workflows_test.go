package main

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// workflow is what the tests look at of a file in .github/workflows.
type workflow struct {
	On          any               `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Concurrency map[string]any    `yaml:"concurrency"`
	Jobs        map[string]struct {
		Uses        string            `yaml:"uses"`
		Permissions map[string]string `yaml:"permissions"`
		Timeout     int               `yaml:"timeout-minutes"`
		Steps       []step            `yaml:"steps"`
	} `yaml:"jobs"`
}

type step struct {
	Uses string         `yaml:"uses"`
	Run  string         `yaml:"run"`
	With map[string]any `yaml:"with"`
}

// mayWrite are the permissions that jobs have beyond reading, by workflow.
var mayWrite = map[string][]string{
	"release.yml": {"attestations", "contents", "id-token", "packages"},
}

var (
	pinned     = regexp.MustCompile(`^\s*(?:- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	makeTarget = regexp.MustCompile(`\bmake ((?:-C \S+ )?)([a-z]+)`)
)

// readWorkflows returns the workflows and their texts, by file.
func readWorkflows(t *testing.T) (map[string]workflow, map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("found %v, %v", files, err)
	}
	parsed, texts := map[string]workflow{}, map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		parsed[filepath.Base(file)], texts[filepath.Base(file)] = w, string(text)
	}
	return parsed, texts
}

// A tag can be moved to other code; a commit can't. The comment is for people,
// and for the bot that proposes updates.
func TestWorkflowsPinActions(t *testing.T) {
	_, texts := readWorkflows(t)
	for file, text := range texts {
		for n, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
			if !strings.Contains(line, "uses: ") || strings.Contains(line, "uses: ./") {
				continue
			}
			if !pinned.MatchString(strings.Replace(line, "- id: ", "", 1)) {
				t.Errorf("%s: %q is not pinned by a commit, with its version in a comment", place(file, n), strings.TrimSpace(line))
			}
		}
	}
}

// What runs on a change of a stranger has a token that reads, and no secrets.
func TestWorkflowsOnlyRead(t *testing.T) {
	parsed, texts := readWorkflows(t)
	for file, w := range parsed {
		if want := map[string]string{"contents": "read"}; !maps.Equal(w.Permissions, want) {
			t.Errorf("%s has permissions %v, want %v", file, w.Permissions, want)
		}
		if w.Concurrency["group"] == nil {
			t.Errorf("%s has no concurrency group", file)
		}
		if strings.Contains(texts[file], "pull_request_target") {
			t.Errorf("%s runs with secrets on the code of strangers: pull_request_target", file)
		}
		if mayWrite[file] == nil && strings.Contains(texts[file], "secrets.") {
			t.Errorf("%s uses secrets", file)
		}
		for name, job := range w.Jobs {
			for permission, level := range job.Permissions {
				if level != "read" && !slices.Contains(mayWrite[file], permission) {
					t.Errorf("%s: job %s may write %s", file, name, permission)
				}
			}
			if job.Timeout == 0 && job.Uses == "" {
				t.Errorf("%s: job %s has no timeout", file, name)
			}
			for _, s := range job.Steps {
				if strings.Contains(s.Run, "${{") {
					t.Errorf("%s: job %s puts an expression into a script, where it can be code; use env:\n%s", file, name, s.Run)
				}
				if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves its token in the checkout", file, name)
				}
			}
		}
	}
	on, _ := parsed["release.yml"].On.(map[string]any)
	if push, _ := on["push"].(map[string]any); len(on) != 1 || len(push) != 1 || push["tags"] == nil {
		t.Errorf("release.yml runs on %v, want tags only", on)
	}
}

// The newest dependencies are tried, and proposed, of every module.
func TestWorkflowsUpdateAllModules(t *testing.T) {
	root := filepath.Join("..", "..")
	var modules []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			module, err := filepath.Rel(root, filepath.Dir(path))
			modules = append(modules, filepath.ToSlash(module))
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(modules, func(a, b string) int { return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")) })
	if want := "for module in " + strings.Join(modules, " ") + "; do"; !strings.Contains(readRoot(t, ".github/workflows/nightly.yml"), want) {
		t.Errorf("nightly.yml lacks %q", want)
	}
	proposed := "[/"
	for _, module := range modules[1:] {
		proposed += ", /" + module
	}
	if want := "directories: " + proposed + "]"; !strings.Contains(readRoot(t, ".github/dependabot.yml"), want) {
		t.Errorf("dependabot.yml lacks %q", want)
	}
}

// The scripts that the workflows call exist.
func TestWorkflowsCallWhatIsThere(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, _ := readWorkflows(t)
	calls := 0
	for file, w := range parsed {
		for name, job := range w.Jobs {
			if local, ok := strings.CutPrefix(job.Uses, "./"); ok {
				if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(local))); err != nil {
					t.Errorf("%s: job %s: %v", file, name, err)
				}
			}
			for _, s := range job.Steps {
				script := strings.ReplaceAll(s.Run, "\\\n", " ")
				for _, m := range makeTarget.FindAllStringSubmatch(script, -1) {
					calls++
					if !regexp.MustCompile(`(?m)^` + m[2] + `:`).Match(makefile) {
						t.Errorf("%s: job %s calls make %s, which the Makefile lacks", file, name, m[2])
					}
				}
				for _, word := range strings.Fields(script) {
					if strings.HasPrefix(word, ".ci/") || strings.HasPrefix(word, "./cmd/") {
						calls++
						if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(word))); err != nil {
							t.Errorf("%s: job %s: %v", file, name, err)
						}
					}
				}
			}
		}
	}
	if calls < 8 {
		t.Errorf("found %d calls: looking in the wrong place", calls)
	}
}
