package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docsPage is a page of the documentation. The tests of the documentation read
// pages through it.
type docsPage struct {
	name  string // from the root, with slashes
	lines []string
}

// docsPages returns all pages of the repository: those of the root and of docs.
func docsPages(t *testing.T) []docsPage {
	t.Helper()
	root := filepath.Join("..", "..")
	var pages []docsPage
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".md") {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		pages = append(pages, readDocsPage(t, filepath.ToSlash(relative)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 20 {
		t.Fatalf("found %d pages: looking in the wrong place", len(pages))
	}
	return pages
}

func readDocsPage(t *testing.T, name string) docsPage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return docsPage{name, strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")}
}

// docsBlock is a block of code of a page.
type docsBlock struct {
	section string // the heading before it, without its marks
	line    int    // its first line, from 1
	fence   string // the language of a fenced block; "" = none, or indented
	lines   []string
}

var listItem = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)

// blocks returns the blocks of code of a page, and its lines without them. In
// a list, indented lines continue an item and are no code.
func (p docsPage) blocks() (blocks []docsBlock, prose []string) {
	section, inFence, inList := "", false, false
	open := -1 // index of the block that is being read
	for n, line := range p.lines {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inFence = !inFence
			if open = -1; inFence {
				blocks = append(blocks, docsBlock{section: section, line: n + 2, fence: strings.TrimPrefix(strings.TrimSpace(line), "```")})
				open = len(blocks) - 1
			}
			prose = append(prose, "")
			continue
		case inFence:
			blocks[open].lines = append(blocks[open].lines, line)
			prose = append(prose, "")
			continue
		case strings.HasPrefix(line, "    ") && !inList && (open >= 0 || n == 0 || p.lines[n-1] == ""):
			if open < 0 {
				blocks = append(blocks, docsBlock{section: section, line: n + 1})
				open = len(blocks) - 1
			}
			blocks[open].lines = append(blocks[open].lines, line[4:])
			prose = append(prose, "")
			continue
		case line == "" && open >= 0 && n+1 < len(p.lines) && strings.HasPrefix(p.lines[n+1], "    "):
			blocks[open].lines = append(blocks[open].lines, "") // a blank line within a block
			prose = append(prose, "")
			continue
		}
		open = -1
		switch {
		case strings.HasPrefix(line, "#"):
			section, inList = strings.TrimSpace(strings.TrimLeft(line, "#")), false
		case listItem.MatchString(line):
			inList = true
		case line != "" && !strings.HasPrefix(line, " "):
			inList = false
		}
		prose = append(prose, line)
	}
	return blocks, prose
}
