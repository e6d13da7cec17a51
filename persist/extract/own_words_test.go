package extract

import (
	"strings"
	"testing"
)

func TestThoughtsAreCut(t *testing.T) {
	for text, want := range map[string]string{
		"<think>secret plan</think>The answer.":               "The answer.",
		"secret plan</think>\nThe answer.":                    "\nThe answer.",
		"One <think>a</think>two <thinking>b</thinking>three": "One two three",
		"The answer.<think>cut off":                           "The answer.",
		"Use a </div> here.":                                  "Use a </div> here.",
		"I think so.":                                         "I think so.",
	} {
		if got := CutThoughts(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestOwnWords(t *testing.T) {
	text := "I live in Porto.\n```go\nmy := 1\n```\n> I live in Rome.\n<file name=\"a\">I live in Oslo.</file>\n$ make\nI like tea."
	got := ownWords(text)
	for _, gone := range []string{"my :=", "Rome", "Oslo", "make"} {
		if strings.Contains(got, gone) {
			t.Errorf("%q is left in %q", gone, got)
		}
	}
	if !strings.Contains(got, "Porto") || !strings.Contains(got, "tea") {
		t.Errorf("own words are gone: %q", got)
	}
}

// TestElementsOfPersons checks that what was typed into an element is the
// user's, and that notes, documents and what a request is about are not.
func TestElementsOfPersons(t *testing.T) {
	for text, want := range map[string]string{
		"<user_query>\nI live in Porto.\n</user_query>":                                               "I live in Porto.",
		"<USER_MESSAGE>I live in Porto.</USER_MESSAGE>\n<editor_state>I live in Oslo.</editor_state>": "I live in Porto.",
		"<p>I live in Porto.</p><p>I like tea.</p>":                                                   "I live in Porto.\n\nI like tea.",
		"<task>I live in Porto.</task>\n\n# Notes\nThe mode is act.":                                  "I live in Porto.\n\n\n# Notes\nThe mode is act.",
		"<message>I live in Porto.</message>":                                                         "I live in Porto.",
		"Which language is this? <message>I live in Oslo.</message>":                                  "Which language is this?",
		"<instructions>Translate.</instructions><text>I live in Oslo.</text>":                         "",
		"<document>I live in Oslo.</document>":                                                        "",
		"<entry id=\"3\">I live in Oslo.</entry>":                                                     "",
		"<p># Rules\nI live in Oslo.</p>":                                                             "",
		"<p>1. I live in Oslo.\n2. I like tea.\n3. I ski.</p>":                                        "",
		"<chat_history>I live in Oslo.</chat_history>":                                                "",
		"<user_query>I live in Porto. <file>I live in Oslo.</file></user_query>":                      "I live in Porto.",
	} {
		if got := ownWords(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestOwnWordsExcludeLogs checks that log lines are not the user's words, even
// in the first person.
func TestOwnWordsExcludeLogs(t *testing.T) {
	text := "I live in Porto.\n2026-03-02T10:11:12Z ERROR my deadline is Friday\n[2026-03-02 10:11] my name is Bob\n10:11:12 I have two cats\n" +
		"panic: I have two goroutines\nnpm ERR! my token is gone\n2026-03-02 is my deadline.\n10:30 is my appointment."
	if got, want := ownWords(text), "I live in Porto.\n2026-03-02 is my deadline.\n10:30 is my appointment."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOwnWordsTakeLinearTime reads messages of nothing but fences, elements or
// thoughts. It takes minutes if each cut copies the rest.
func TestOwnWordsTakeLinearTime(t *testing.T) {
	for _, p := range []string{
		"```", "```x", "~~~```", "~~~x~~~\n", "<a>", "<a></a>", "<a><b></a>", "<a ", "<", "<think>", "</think>", "<think></think>", "<think>x</think>y",
		"<think><thinking>", "</thinking><think>", "<thought>x</thought>", "<thi<think></think>nk>", "> a\n", "    a\n",
	} {
		text := strings.Repeat(p, 1<<20/len(p))
		own := ownWords(text)
		if len(own) > len(text) || strings.Contains(own, "```") || strings.Contains(own, "<think>") {
			t.Errorf("%q: %d bytes are left of %d, begun by %.40q", p, len(own), len(text), own)
		}
		if got := foreignText(text); len(got) > 2*len(text) {
			t.Errorf("%q: %d bytes are foreign of %d", p, len(got), len(text))
		}
	}
}

// TestNestedThoughts checks that what is around a thought may not become the
// beginning of another.
func TestNestedThoughts(t *testing.T) {
	for in, want := range map[string]string{
		"a<thi<think>b</think>nk>c</think>d": "ad",
		"a<thi<think>b</think>nk>c":          "a",
		"a" + strings.Repeat("<thi", 20) + "<think></think>" + strings.Repeat("nk></think>", 20) + "b": "a" + strings.Repeat("<thi", 12),
	} {
		if got := CutThoughts(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
