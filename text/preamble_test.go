package text

import (
	"strings"
	"testing"
)

func TestPreamblesAreCut(t *testing.T) {
	for _, c := range [][2]string{
		{"# Context from my IDE setup:\n\n## Active file: cmd/pump.go\n\n## Open tabs:\n- pump.go: cmd/pump.go\n\n## My request for Codex:\nwhen is my flight?\n", "when is my flight?"},
		{"\n# Files mentioned by the user:\n\n## scan.png: /tmp/scan.png\n\n## My request for Codex:\nwhat is on it?\n\nshort please", "what is on it?\n\nshort please"},
		{"# Workspace\n- go.mod\n\n# User request\nfix the build", "fix the build"},
		{"## Selection\nfunc main() {}\n\n## My question\nhow do we log errors?\n\n### Details\nonly in cmd", "how do we log errors?\n\n### Details\nonly in cmd"},
	} {
		if got := strings.TrimSpace(HumanWords(c[0])); got != c[1] {
			t.Errorf("%q: got %q, want %q", c[0], got, c[1])
		}
	}
	for _, whole := range []string{
		"my request is simple:\n# My request\nfix it", "# Notes\n\n## Plan\nbuy milk", "#hashtag\n# My request\nx", "# Plan\n\n## My request for Codex:\n", "# A\nsee the section \"My request\"",
	} {
		if got := HumanWords(whole); got != whole {
			t.Errorf("%q: got %q, want all of it", whole, got)
		}
	}
}
