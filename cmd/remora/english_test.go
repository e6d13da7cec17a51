package main

import (
	"bufio"
	"bytes"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// The rules of wording and size that a machine can check. Each failure prints its
// reason. CONTRIBUTING.md has the rules that only a reader can check.

const (
	maxPhrases       = 10  // in Go, and in Markdown
	maxWideComments  = 60  // comment lines of over 100 columns
	maxCommentColumn = 100 // with tabs of four
	maxCommentWords  = 11  // a line, on average
	maxMarkdownWidth = 120 // columns, except tables, code and links
	maxPageLines     = 280 // of a page of docs
	maxFolderFiles   = 36  // without tests
	maxMethods       = 45  // of a type
	maxMethodFiles   = 8   // that they are in
)

const (
	phraseReason = `Write what an engineer would say aloud: "reports whether" or "returns" instead of "says whether" or "tells", "next to" instead of
"beside", "again" instead of "anew". A stranger can't search for private phrases.`
	boundReason  = "A bound is called max... or min..., so that a search for bounds finds all of them."
	widthReason  = "Comments fit in 100 columns, and average at most 11 words a line: short lines and short sentences are read faster."
	pageReason   = "A page is at most 280 lines long, and prose is wrapped at 120 columns, so that differences can be read."
	folderReason = "A folder that is fuller hides a second concept: give it a package."
	methodReason = "A type with more methods, or in more files, hides a second concept: give it a type."
)

// phrases are constructions that read as translated, or that only this project
// would use.
var phrases = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`says whether`, `tells whether`, `\bis told\b`, `\bare told\b`, `\btold of\b`, `\btells of\b`,
	`\bstands? (?:in|at|there|twice|where|for good)\b`, `\bbeside\b`, `\banew\b`, `\bwhoever\b`, `\bnobody's\b`, `\bis none of\b`,
	`\bwhat of\b`, `\bheed`, `\bby itself\b`, `\bfor good\b`, `\bgoes on\b`, `\bthereof\b`, `\bto be had\b`, `\bas it came\b`, `\bas they came\b`,
}, "|"))

// quotesPhrases are files that quote the phrases, or words that people may say.
var quotesPhrases = []string{"cmd/remora/english_test.go"}

func TestEnglish(t *testing.T) {
	var found, wide []string
	lines, words := 0, 0
	for _, s := range sources(t) {
		if slices.Contains(quotesPhrases, s.file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(s.file)))
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			trimmed := strings.TrimSpace(line)
			if m := phrases.FindString(line); m != "" && (strings.Contains(line, "//") || strings.Contains(line, `"`)) {
				found = append(found, place(s.file, n)+": "+m)
			}
			if !strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "//go:") {
				continue
			}
			lines++
			words += len(strings.Fields(trimmed)) - 1
			if utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > maxCommentColumn {
				wide = append(wide, place(s.file, n))
			}
		}
		for _, name := range bounds(s.syntax) {
			t.Errorf("%s: %s\n%s", s.file, name, boundReason)
		}
	}
	if len(found) > maxPhrases {
		t.Errorf("%d phrases in comments and strings, want at most %d:\n%s\n%s", len(found), maxPhrases, strings.Join(found, "\n"), phraseReason)
	}
	if len(wide) > maxWideComments {
		t.Errorf("%d comment lines of over %d columns, want at most %d:\n%s\n%s", len(wide), maxCommentColumn, maxWideComments, strings.Join(wide, "\n"), widthReason)
	}
	if average := float64(words) / float64(lines); average > maxCommentWords {
		t.Errorf("comment lines have %.1f words on average, want at most %d\n%s", average, maxCommentWords, widthReason)
	}
}

// bounds returns the names of a file that call a bound most or least.
func bounds(f *ast.File) (names []string) {
	bound := regexp.MustCompile(`^(?:most|least|Most|Least)[A-Z]`)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, id := range n.Names {
				if bound.MatchString(id.Name) {
					names = append(names, id.Name)
				}
			}
		case *ast.Field:
			for _, id := range n.Names {
				if bound.MatchString(id.Name) {
					names = append(names, id.Name)
				}
			}
		}
		return true
	})
	return names
}

func TestMarkdown(t *testing.T) {
	var found, wide []string
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file := filepath.ToSlash(relative)
		code, n := false, 0
		for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); n++ {
			line := scan.Text()
			if m := phrases.FindString(line); m != "" {
				found = append(found, place(file, n)+": "+m)
			}
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			free := code || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "#")
			if !free && utf8.RuneCountInString(line) > maxMarkdownWidth {
				wide = append(wide, place(file, n))
			}
		}
		generated := file == "docs/configuration.md" // a row for each setting
		if path.Dir(file) == "docs" && n > maxPageLines && !generated {
			t.Errorf("%s has %d lines, want at most %d\n%s", file, n, maxPageLines, pageReason)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(wide) > 0 {
		t.Errorf("lines of more than %d columns:\n%s\n%s", maxMarkdownWidth, strings.Join(wide, "\n"), pageReason)
	}
	if len(found) > maxPhrases {
		t.Errorf("%d phrases in Markdown, want at most %d:\n%s\n%s", len(found), maxPhrases, strings.Join(found, "\n"), phraseReason)
	}
}

func TestFoldersAndTypesAreNotTooFull(t *testing.T) {
	files := map[string]int{}
	type typ struct{ dir, name string }
	methods, in := map[typ]int{}, map[typ]map[string]bool{}
	for _, s := range sources(t) {
		files[s.dir]++
		for _, d := range s.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			r := f.Recv.List[0].Type
			if star, ok := r.(*ast.StarExpr); ok {
				r = star.X
			}
			if generic, ok := r.(*ast.IndexExpr); ok {
				r = generic.X
			}
			id, ok := r.(*ast.Ident)
			if !ok {
				continue
			}
			k := typ{s.dir, id.Name}
			if methods[k]++; in[k] == nil {
				in[k] = map[string]bool{}
			}
			in[k][s.file] = true
		}
	}
	for dir, n := range files {
		if n > maxFolderFiles {
			t.Errorf("%s has %d files, want at most %d\n%s", dir, n, maxFolderFiles, folderReason)
		}
	}
	for k, n := range methods {
		if n > maxMethods || len(in[k]) > maxMethodFiles {
			t.Errorf("%s.%s has %d methods in %d files, want at most %d in %d\n%s", k.dir, k.name, n, len(in[k]), maxMethods, maxMethodFiles, methodReason)
		}
	}
}

// place names a line of a file, counted from 0.
func place(file string, n int) string {
	return file + ":" + strconv.Itoa(n+1)
}
