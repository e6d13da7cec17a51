package text

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestHumanWords(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain", "plain"},
		{"<system-reminder>secret\nplans</system-reminder>hi", "hi"},
		{"<system-reminder>not closed", ""},
		{"<environment_context>\n<cwd>/x</cwd></environment_context> fix it", "fix it"},
		{"<user_instructions>be nice</user_instructions>\nwhat now?", "what now?"},
		{"<file path=\"a.go\">package a</file> explain", "explain"},
		{"<project_layout_info>a tree</project_layout_info>\n<user_request>\nrename it\n</user_request>", "rename it"},
		{"<editorState>open: a.go</editorState> <humanPrompt>rename <b>it</b></humanPrompt>", "rename <b>it</b>"},
		{"<my-box>stays</my-box> and <info>stays</info>", "<my-box>stays</my-box> and <info>stays</info>"},
		{"Why does <SettingsWindow>x</SettingsWindow> not open in XAML?", "Why does <SettingsWindow>x</SettingsWindow> not open in XAML?"},
		{"<SettingsWindow>x</SettingsWindow> does not open", "<SettingsWindow>x</SettingsWindow> does not open"},
		{"what does <build_config>x</build_config> mean here?", "what does <build_config>x</build_config> mean here?"},
		{"why?\n```xml\n<build-config>x</build-config>\n```", "why?\n```xml\n<build-config>x</build-config>\n```"},
		{"```xml\n<build-config>x</build-config>\n```\nwhy?", "```xml\n<build-config>x</build-config>\n```\nwhy?"},
		{"<user_query>rename it</user_query>\n<editor_state>a.go</editor_state>\n<repo-info>b</repo-info>", "rename it"},
		{"<editor_state>```go</editor_state><repo_info>b</repo_info> rename it", "rename it"},
		{"rename it\n<editor_state>a.go</editor_state>", "rename it"},
		{"<filed> stays, a < b and <file", "<filed> stays, a < b and <file"},
		{"look: ```go\nx := 1\n``` ok", "look: ```go\nx := 1\n``` ok"},
		{"look: ```" + strings.Repeat("x := 1\n", 100) + "``` ok", "look:   ok"},
		{"look: ```" + strings.Repeat("x := 1\n", 100), "look:"},
	} {
		if got := strings.TrimSpace(HumanWords(tt.in)); got != tt.want {
			t.Errorf("%.40q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

// CutElements, which looks for all names at once, removes what removing one
// name after another would.
func TestCutElements(t *testing.T) {
	names := []string{"a", "ab", "b c", "system-reminder", ""}
	pieces := []string{"<", "</", ">", " ", "\n", "a", "ab", "b c", "system-reminder", "<a>", "</a>", "<ab x>", "</ab>", "x", "<b c>", "</b c>"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(12) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		in := b.String()
		want := in
		for _, n := range names[:4] {
			want = cutElement(want, n)
		}
		if got := CutElements(in, names); got != want {
			t.Fatalf("%q: got %q, want %q", in, got, want)
		}
	}
}

// Elements are known by their names in any case.
func TestElementsInAnyCase(t *testing.T) {
	for _, message := range []string{
		"<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>\nmine", "<Instructions>Be brief.</Instructions> mine", "<instructions>Be brief.</INSTRUCTIONS> mine", "mine <SYSTEM-REMINDER>never ends", "<File name=\"a\">x</File> mine",
	} {
		if got := strings.TrimSpace(HumanWords(message)); got != "mine" {
			t.Errorf("%q: got %q", message, got)
		}
	}
}
