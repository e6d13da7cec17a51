package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentedMessages checks that docs/log-messages.md has a row for each
// warning and error that the program logs, or for its beginning.
func TestDocumentedMessages(t *testing.T) {
	var documented []string
	for _, line := range readDocsPage(t, "docs/log-messages.md").lines {
		if cell := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cell) == 3 {
			for _, m := range docsSpan.FindAllStringSubmatch(cell[0], -1) {
				documented = append(documented, m[1])
			}
		}
	}
	if len(documented) < 80 {
		t.Fatalf("found %d messages in the page: reading it wrongly", len(documented))
	}
	logged := map[string]string{}
	for _, s := range sources(t) {
		if strings.HasPrefix(s.dir, "cmd/remora-") || strings.HasSuffix(s.dir, "test") {
			continue
		}
		for _, m := range warnings(s.syntax) {
			logged[m] = s.file
		}
	}
	for message, file := range logged {
		if !slices.ContainsFunc(documented, func(d string) bool { return strings.HasPrefix(message, d) }) {
			t.Errorf("docs/log-messages.md has no row for %q (%s): say what it means, and what is to be done", message, file)
		}
	}
	for _, d := range documented {
		known := false
		for message := range logged {
			known = known || strings.HasPrefix(message, d)
		}
		if !known {
			t.Errorf("docs/log-messages.md has a row for %q, which nothing logs", d)
		}
	}
}

// warnings returns the messages that a file logs as warnings and errors.
func warnings(f *ast.File) (messages []string) {
	at := map[string]int{"Warn": 0, "Error": 0, "WarnContext": 1, "ErrorContext": 1} // the argument
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		i, ok := at[method.Sel.Name]
		if !ok || i >= len(call.Args) {
			return true
		}
		if text, ok := call.Args[i].(*ast.BasicLit); ok && text.Kind == token.STRING {
			if message, err := strconv.Unquote(text.Value); err == nil {
				messages = append(messages, message)
			}
		}
		return true
	})
	return messages
}

// TestAlertsHaveRunbooks checks that docs/operations.md has a section for each
// alert of docs/telemetry.md.
func TestAlertsHaveRunbooks(t *testing.T) {
	sections := readDocsPage(t, "docs/operations.md").anchors()
	for _, line := range readDocsPage(t, "docs/telemetry.md").lines {
		name, ok := strings.CutPrefix(line, "| `Remora")
		if !ok {
			continue
		}
		alert := "Remora" + name[:strings.IndexByte(name, '`')]
		if !slices.Contains(sections, strings.ToLower(alert)) {
			t.Errorf("docs/operations.md has no section %s", alert)
		}
	}
}
