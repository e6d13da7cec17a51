package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// docsCommand is where a command line of Remora begins: at the start of a line
// or of a span of code, behind variables, a prompt, a pipe or an opening.
var docsCommand = regexp.MustCompile(`(?:^|[|&;(]\s*|\$\(|-- |exec |\s)(?:(?:\./|/|bin/)?remora|go run \./cmd/remora)((?:\s+\S+)+|$)`)

var (
	docsSpan = regexp.MustCompile("`([^`]+)`")
	docsEnd  = regexp.MustCompile(`\s{2,}|\s#|[|&;<>)]|$`)
	docsWord = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// TestDocumentedCommands checks every command line of Remora in every page:
// the command and its flags exist, and the first argument is one that it knows
// if it knows only some.
func TestDocumentedCommands(t *testing.T) {
	root := newRoot(streams{func(string) string { return "" }, strings.NewReader(""), io.Discard, io.Discard})
	words := map[string][]string{}
	for _, c := range commands() {
		words[c.name] = c.words
	}
	checked := 0
	used := map[string]bool{}
	for _, p := range docsPages(t) {
		if strings.HasPrefix(p.name, "docs/decisions/") || p.name == "CHANGELOG.md" {
			continue // what was, not what is
		}
		for _, line := range p.commandLines() {
			name, problem := docsProblem(root, words, line)
			if name == "" {
				continue
			}
			checked++
			used[name] = true
			if problem != "" {
				t.Errorf("%s: remora %s: %s", p.name, line, problem)
			}
		}
	}
	if checked < 150 {
		t.Errorf("found %d command lines: reading the wrong pages", checked)
	}
	for _, c := range root.Commands() {
		if !c.Hidden && !used[c.Name()] {
			t.Errorf("no page has an example of remora %s", c.Name())
		}
	}
}

// commandLines returns what follows "remora" in the blocks and spans of code of
// a page.
func (p docsPage) commandLines() (lines []string) {
	blocks, prose := p.blocks()
	var codes []string
	for _, b := range blocks {
		if b.fence == "" || b.fence == "sh" {
			codes = append(codes, strings.Split(strings.ReplaceAll(strings.Join(b.lines, "\n"), "\\\n", " "), "\n")...)
		}
	}
	for _, m := range docsSpan.FindAllStringSubmatch(strings.Join(prose, "\n"), -1) {
		codes = append(codes, strings.ReplaceAll(m[1], "\n", " "))
	}
	for _, code := range codes {
		for _, m := range docsCommand.FindAllStringSubmatch(code, -1) {
			arguments := strings.TrimSpace(m[1])
			lines = append(lines, arguments[:docsEnd.FindStringIndex(arguments)[0]])
		}
	}
	return lines
}

// docsProblem returns the name of the command, or "" if the line is none, and
// what is wrong with it.
func docsProblem(root *cobra.Command, words map[string][]string, line string) (name, problem string) {
	arguments := strings.Fields(line)
	if len(arguments) == 0 || !docsWord.MatchString(arguments[0]) {
		return "", "" // a path, a name in a sentence, an option of another program
	}
	name = arguments[0]
	if name == "help" {
		if len(arguments) == 1 || arguments[1] == strings.ToUpper(arguments[1]) {
			return "", ""
		}
		name, arguments = arguments[1], arguments[:1]
	}
	command, _, err := root.Find([]string{name})
	if err != nil || command == root {
		return name, "there is no such command"
	}
	for _, a := range arguments[1:] {
		if a == "--" {
			break // what follows is another program's
		}
		flag, _, _ := strings.Cut(a, "=")
		switch {
		case strings.HasPrefix(flag, "--"):
			if command.Flags().Lookup(strings.TrimPrefix(flag, "--")) == nil && flag != "--help" {
				return name, "there is no flag " + flag
			}
		case len(flag) == 2 && flag[0] == '-':
			if command.Flags().ShorthandLookup(flag[1:]) == nil && flag != "-h" {
				return name, "there is no flag " + flag
			}
		}
	}
	if known := words[name]; len(known) > 0 && len(arguments) > 1 && docsWord.MatchString(arguments[1]) && !slices.Contains(known, arguments[1]) {
		return name, "the first argument is one of " + strings.Join(known, ", ")
	}
	return name, ""
}
