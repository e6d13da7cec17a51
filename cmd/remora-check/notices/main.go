// Command notices writes the licences of what is compiled into remora to a file, from the module
// cache and from the licences that lie next to embedded data. It refuses a component without a
// licence, and a licence that it does not know or that would not allow Apache-2.0 distribution.
// The same modules always give the same bytes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// platforms are those that are released. What is linked differs by operating system.
var platforms = []string{"linux", "darwin", "windows"}

// program is the package whose dependencies are listed.
const program = "github.com/remora-proxy/remora/cmd/remora"

// component is something of others in the binary.
type component struct {
	name, version, licence string
	texts                  []text
}

// text is a licence or a notice, and where in the component it was found.
type text struct{ file, content string }

// data are files of others that are embedded, with their licences, relative to the root.
var data = []struct{ name, version, licence string }{
	{"gitleaks, rules (redact/gitleaks/rules.tsv)", "v8.30.1", "redact/gitleaks/LICENSE"},
	{"htmx (api/page/assets)", "v4.0.1", "api/page/assets/htmx.LICENSE"},
	{"uPlot (api/page/assets)", "v1.6.32", "api/page/assets/uplot.LICENSE"},
	// Its licence is the text that is also ours.
	{"libphonenumber, metadata (in github.com/nyaruka/phonenumbers)", "", "LICENSE"},
}

func main() {
	out := flag.String("o", "", "write to `file`")
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix("notices: ")
	ctx := context.Background()
	root, err := rootDirectory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	all, err := components(ctx, root)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, render(all), 0o644); err != nil {
		log.Fatal(err)
	}
}

// rootDirectory returns the directory of the main module.
func rootDirectory(ctx context.Context) (string, error) {
	mod, err := environment(ctx, "GOMOD")
	return filepath.Dir(mod), err
}

// environment returns a variable of the go command.
func environment(ctx context.Context, name string) (string, error) {
	value, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("read %s of the go command: %w", name, err)
	}
	return strings.TrimSpace(string(value)), nil
}

// components returns Go, the linked modules by name, and the embedded data.
func components(ctx context.Context, root string) ([]component, error) {
	all, err := modules(ctx)
	if err != nil {
		return nil, err
	}
	goRoot, err := environment(ctx, "GOROOT")
	if err != nil {
		return nil, err
	}
	// Its version is the builder's; "remora version" prints it.
	standard, err := readComponent("Go, standard library", "", goRoot, nil)
	if err != nil {
		return nil, err
	}
	all = append([]component{standard}, all...)
	for _, d := range data {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(d.licence)))
		if err != nil {
			return nil, fmt.Errorf("read licence of %s: %w", d.name, err)
		}
		c := component{name: d.name, version: d.version, texts: []text{{path.Base(d.licence), tidy(content)}}}
		if c.licence, err = classify(c); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// linked is a package as go list prints it.
type linked struct {
	Dir    string
	Module *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// modules returns the modules that are linked on any of the platforms, by name.
func modules(ctx context.Context) ([]component, error) {
	type module struct {
		version, dir string
		packages     []string
	}
	found := map[string]*module{}
	for _, system := range platforms {
		packages, err := list(ctx, system)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := found[p.Module.Path]
			if m == nil {
				m = &module{version: p.Module.Version, dir: p.Module.Dir}
				found[p.Module.Path] = m
			}
			if !slices.Contains(m.packages, p.Dir) {
				m.packages = append(m.packages, p.Dir)
			}
		}
	}
	var all []component
	for name, m := range found {
		c, err := readComponent(name, m.version, m.dir, m.packages)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// list returns the packages that the program is made of on a system, without the standard library.
func list(ctx context.Context, system string) ([]linked, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Module", program)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages for %s: %w", system, err)
	}
	var all []linked
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p linked
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read packages for %s: %w", system, err)
		}
		all = append(all, p)
	}
}

// readComponent reads the licences of a module: those of its root, and those next to or above the
// packages that are linked, because code that a module has copied keeps its own.
func readComponent(name, version, root string, packages []string) (component, error) {
	c := component{name: name, version: version}
	dirs := []string{root}
	for _, dir := range packages {
		for ; len(dir) > len(root) && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		texts, err := readTexts(root, dir)
		if err != nil {
			return c, fmt.Errorf("read licence of %s: %w", name, err)
		}
		c.texts = append(c.texts, texts...)
	}
	var err error
	c.licence, err = classify(c)
	return c, err
}

// readTexts returns the licences and notices of a directory.
func readTexts(root, dir string) ([]text, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []text
	for _, e := range entries {
		if e.IsDir() || !isLicence(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, text{filepath.ToSlash(relative), tidy(content)})
	}
	return all, nil
}

// isLicence reports whether a file's name is that of a licence, a notice or a grant of patents.
func isLicence(name string) bool {
	if strings.HasSuffix(name, ".go") {
		return false
	}
	upper := strings.ToUpper(name)
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, func(word string) bool {
		return strings.Contains(upper, word)
	})
}

// tidy removes what differs between copies of one text: line ends, spaces at them, empty lines
// around the text.
func tidy(content []byte) string {
	lines := strings.Split(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}
