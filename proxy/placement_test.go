package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/recall/fence"
)

func TestSystemPlacement(t *testing.T) { inEach(t, testSystemPlacement) }

func testSystemPlacement(t *testing.T, a api) {
	for _, tt := range []struct {
		name    string
		history []string
	}{
		{"a prompt", []string{"system: be kind"}},
		{"no prompt", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := a.rig(t, func(c *Config, _ *Deps) { c.Injection.Placement = PlacementSystem })
			r.recall.set("one")
			r.post(a.body(append(tt.history, "user: q1")...))
			r.recall.set("two")
			got := r.post(a.body(append(tt.history, "user: q1", "assistant: fine", "user: q2")...))
			if got.status != StatusReplayed || got.memories != "1" { // only the first turn decides
				t.Errorf("status %s with %s memories, want replayed with 1", got.status, got.memories)
			}
			lines := a.lines(t, r.sent()[1].body)
			system := ""
			for len(lines) > 0 && strings.HasPrefix(lines[0], "system: ") {
				system += strings.TrimSpace(strings.TrimPrefix(lines[0], "system: ")) + ";"
				lines = lines[1:]
			}
			want := "[one];"
			switch {
			case tt.history != nil && (a.marks || a.name == "gemini"): // a block of its own, behind the mark
				want = "be kind;" + want
			case tt.history != nil:
				want = "[one]be kind;"
			}
			if system != want {
				t.Errorf("system prompt %q, want %q", system, want)
			}
			if diff := cmp.Diff([]string{"user: q1", "assistant: fine", "user: q2"}, lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRuleInSystem(t *testing.T) { inEach(t, testRuleInSystem) }

func testRuleInSystem(t *testing.T, a api) {
	r := a.rig(t, func(c *Config, _ *Deps) { c.Injection.RuleInSystem = true })
	r.recall.set("fact")
	r.post(a.body("system: be kind", "user: q1"))
	system, rest := "", ""
	for _, p := range a.pieces(t, r.one().body) {
		if strings.HasPrefix(p.line, "system: ") {
			system += p.line
		} else {
			rest += p.line
		}
	}
	if !strings.HasPrefix(system, "system: be kind") || !strings.Contains(system, fence.Rule) || strings.Contains(rest, fence.Rule) {
		t.Errorf("system %q, messages %q; want the rule in the system prompt only", system, rest)
	}
}
