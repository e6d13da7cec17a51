package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A copy of the binary alone carries the licences of what is in it.
func TestVersionPrintsLicences(t *testing.T) {
	var out, errs bytes.Buffer
	err := run(context.Background(), []string{"version", "--licenses"}, func(string) string { return "" }, strings.NewReader(""), &out, &errs)
	if err != nil || errs.Len() > 0 {
		t.Fatalf("got %v and %q", err, errs.String())
	}
	for _, want := range []string{"github.com/dgraph-io/badger/v4", "gitleaks", "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION", "Zachary Rice"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the licences lack %q", want)
		}
	}
}

func TestBuildNamesItsCommit(t *testing.T) {
	for _, tt := range []struct {
		b    build
		want string
	}{
		{build{version: "v1.2.3", commit: "0123456789abcdef0123"}, "remora v1.2.3 (commit 0123456789ab, "},
		{build{version: "v1.2.3", commit: "0123456789abcdef0123", dirty: true}, "remora v1.2.3 (commit 0123456789ab with changes, "},
		{build{version: "(devel)"}, "remora development build (commit unknown, "},
	} {
		if got := tt.b.String(); !strings.HasPrefix(got, tt.want) {
			t.Errorf("got %q, want %q...", got, tt.want)
		}
	}
}

func TestManualHasEachCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	getenv := func(name string) string { return map[string]string{"SOURCE_DATE_EPOCH": "1700000000"}[name] }
	var out, errs bytes.Buffer
	if err := run(context.Background(), []string{"man", dir}, getenv, strings.NewReader(""), &out, &errs); err != nil || errs.Len() > 0 {
		t.Fatalf("got %v and %q", err, errs.String())
	}
	for _, c := range commands() {
		page, err := os.ReadFile(filepath.Join(dir, "remora-"+c.name+".1"))
		if c.hidden {
			if err == nil {
				t.Errorf("%s is hidden and has a page", c.name)
			}
			continue
		}
		if err != nil || !strings.Contains(string(page), `"2023-11-14"`) {
			t.Errorf("%s has no page, or one without its date: %v", c.name, err)
		}
	}
	overview(&out)
	if strings.Contains(out.String(), " man ") {
		t.Error("the overview shows a hidden command")
	}
}
