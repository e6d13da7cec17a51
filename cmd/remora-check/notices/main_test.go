package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The licences in the repository are those of the modules that go.mod names today.
func TestNoticesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	all, err := components(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "cmd", "remora", "notices", "THIRD_PARTY_NOTICES.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")) // as Git may check it out on Windows
	want := render(all)
	if !bytes.Equal(got, want) {
		t.Errorf("cmd/remora/notices/THIRD_PARTY_NOTICES.txt is stale, run go generate ./cmd/remora/notices\ngot:\n%s\nwant:\n%s", head(got), head(want))
	}
}

// head returns the table of components.
func head(notices []byte) []byte {
	table, _, _ := bytes.Cut(notices, []byte("\n# The texts\n"))
	return table
}

// The versions of embedded data are those that the data itself names.
func TestEmbeddedVersions(t *testing.T) {
	for _, tt := range []struct{ component, file, words string }{
		{"htmx", "api/page/assets/htmx.min.js", `version="%"`},
		{"uPlot", "api/page/assets/uplot.min.js", "leeoniya/uPlot (v%)"},
		{"gitleaks", "docs/redaction-rules.md", "gitleaks) % (MIT"},
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(tt.file)))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, d := range data {
			if strings.HasPrefix(d.name, tt.component) {
				words := strings.ReplaceAll(tt.words, "%", strings.TrimPrefix(d.version, "v"))
				found = strings.Contains(string(content), words)
			}
		}
		if !found {
			t.Errorf("%s does not name the version that data gives for %s", tt.file, tt.component)
		}
	}
}

func TestClassify(t *testing.T) {
	const (
		mit  = "Permission is hereby granted, free of\ncharge, to any person. The above copyright notice and this permission notice shall"
		bsd2 = "Redistribution and use in source and binary forms, with or without modification"
		bsd3 = bsd2 + ". Neither the name may be used to endorse or\n promote products"
		zero = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted."
		isc  = zero + " provided that the above copyright notice and this permission notice appear in all copies"
	)
	for _, tt := range []struct {
		name    string
		texts   []text
		want    string
		refuses string
	}{
		{name: "MIT", texts: []text{{"LICENSE", mit}}, want: "MIT"},
		{name: "two clauses", texts: []text{{"LICENSE", bsd2}}, want: "BSD-2-Clause"},
		{name: "three clauses", texts: []text{{"LICENSE", bsd3}}, want: "BSD-3-Clause"},
		{name: "no clause", texts: []text{{"LICENSE", zero}}, want: "0BSD"},
		{name: "ISC", texts: []text{{"LICENSE", isc}}, want: "ISC"},
		{name: "two in one file", texts: []text{{"LICENSE", mit + bsd3}}, want: "BSD-3-Clause AND MIT"},
		{name: "one of a copied package", texts: []text{{"LICENSE", mit}, {"internal/x/LICENSE", bsd3}}, want: "BSD-3-Clause AND MIT"},
		{name: "patents and notices do not count", texts: []text{{"PATENTS", "?"}, {"NOTICE.txt", "?"}, {"LICENSE", mit}}, want: "MIT"},
		{name: "none", texts: []text{{"NOTICE", "?"}}, refuses: "has no licence"},
		{name: "unknown", texts: []text{{"LICENSE", "GNU GENERAL PUBLIC LICENSE"}}, refuses: "not known"},
		{name: "one unknown of two", texts: []text{{"LICENSE", mit}, {"x/COPYING", "GNU"}}, refuses: "not known"},
		{name: "refused", texts: []text{{"LICENSE", "Mozilla Public License Version 2.0"}}, refuses: "may not be linked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := classify(component{name: "x", texts: tt.texts})
			if tt.refuses != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refuses) {
					t.Fatalf("got %q, %v, want an error with %q", got, err, tt.refuses)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
