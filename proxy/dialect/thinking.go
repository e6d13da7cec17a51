package dialect

import "strings"

// thoughtMarks enclose what a model thinks aloud in front of its answer, in the
// chat formats of several models.
var thoughtMarks = [...]struct{ open, end string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<thoughts>", "</thoughts>"},
	{"<reasoning>", "</reasoning>"},
	{"<reflection>", "</reflection>"},
	{"<seed:think>", "</seed:think>"},
	{"<|begin_of_thought|>", "<|end_of_thought|>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"[THINK]", "[/THINK]"},
	{"<|channel>thought", "<channel|>"},
	{"<unused94>thought", "<unused95>"},
	{"◁think▷", "◁/think▷"},
}

// thoughtNames are parts of the names of elements for thoughts, in the forms of
// elementForms.
var thoughtNames = [...]string{"think", "thought", "reason", "reflect", "analysis", "scratchpad", "monologue", "rationale", "deliberat", "cot", "internal"}

// elementForms are what is around the name of an element.
var elementForms = [...]struct{ open, close string }{
	{"<|", "|>"},
	{"<", ">"},
	{"[", "]"},
	{"◁", "▷"},
}

// maxElement is the longest opening tag of an element, in bytes.
const maxElement = 64

// afterThought returns what follows an element for thoughts that text begins
// with, whatever its form. It is not ok unless there is such an element and an
// answer after it, because a model may have been asked for such elements.
func afterThought(text string) (answer string, ok bool) {
	for _, f := range elementForms {
		inside, found := strings.CutPrefix(text, f.open)
		if !found {
			continue
		}
		tag, inside, found := strings.Cut(inside, f.close)
		if !found || len(tag) > maxElement {
			return "", false
		}
		name, attributes, _ := strings.Cut(tag, " ")
		if !isThoughtName(name) && !isThoughtName(attributes) { // <details type="reasoning">
			return "", false
		}
		folded := strings.ToLower(inside)
		for _, end := range [...]string{f.open + "/" + name + f.close, f.open + "end_" + name + f.close, f.open + "end_of_" + name + f.close} {
			end = strings.ToLower(end)
			if i := strings.Index(folded, end); i >= 0 && len(folded) == len(inside) {
				answer = strings.TrimLeft(inside[i+len(end):], blanks)
				return answer, answer != ""
			}
		}
	}
	return "", false
}

// isThoughtName reports whether one of the words of name is for thoughts.
func isThoughtName(name string) bool {
	name = strings.ToLower(name)
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r < 'a' || r > 'z' }) {
		for _, n := range thoughtNames {
			if strings.HasPrefix(word, n) || len(n) > len("cot") && strings.Contains(word, n) {
				return true
			}
		}
	}
	return false
}

// thoughtTitles are sentences before a thought and before the answer.
var thoughtTitles = [...]struct{ open, end string }{
	{"Here is my thought process:", "Here is my response:"},
	{"Here's my thought process:", "Here's my response:"},
	{"### Thinking", "### Final Response"},
	{"## Thinking", "## Final Response"},
}

// answerMarks may enclose the answer behind such thoughts.
var answerMarks = [...]struct{ open, end string }{
	{"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
	{"<|START_TEXT|>", "<|END_TEXT|>"},
	{"<|begin_of_solution|>", "<|end_of_solution|>"},
	{"<answer>", "</answer>"},
	{"<output>", "</output>"},
	{"<response>", "</response>"},
}

const blanks = " \n\r\t"

// withoutThinking removes the reasoning that some servers leave in front of the
// answer. Reasoning that was never closed leaves no answer.
func withoutThinking(text string) string {
	if answer, ok := harmonyAnswer(text); ok {
		return answer
	}
	rest := strings.TrimLeft(text, blanks)
	for _, m := range thoughtMarks {
		inside, ok := strings.CutPrefix(rest, m.open)
		if !ok {
			continue
		}
		_, answer, _ := strings.Cut(inside, m.end)
		return withoutThinking(unwrapAnswer(strings.TrimLeft(answer, blanks)))
	}
	if answer, ok := afterThought(rest); ok {
		return withoutThinking(unwrapAnswer(answer))
	}
	for _, m := range thoughtTitles {
		if inside, ok := strings.CutPrefix(rest, m.open); ok {
			if _, answer, closed := strings.Cut(inside, m.end); closed {
				return strings.TrimLeft(answer, blanks)
			}
		}
	}
	for _, m := range thoughtMarks {
		// A chat template may have opened the mark in the prompt. An answer
		// that talks about the mark has it within a line.
		before, answer, closed := strings.Cut(text, m.end)
		if closed && !strings.Contains(before, m.open) && (answer == "" || answer[0] == '\n' || answer[0] == '\r') {
			return unwrapAnswer(strings.TrimLeft(answer, blanks))
		}
	}
	return text
}

// unwrapAnswer removes the marks around an answer.
func unwrapAnswer(answer string) string {
	for _, m := range answerMarks {
		if inside, ok := strings.CutPrefix(answer, m.open); ok {
			inside, _, _ = strings.Cut(inside, m.end)
			return strings.TrimLeft(inside, blanks)
		}
	}
	return answer
}

// harmonyAnswer returns the final message of a text in the Harmony format,
// which begins with a channel. Without a final message there is no answer.
func harmonyAnswer(text string) (answer string, ok bool) {
	const channel, message = "<|channel|>", "<|message|>"
	rest := strings.TrimLeft(text, blanks)
	rest = strings.TrimPrefix(rest, "<|start|>assistant")
	if !strings.HasPrefix(rest, channel) {
		return "", false
	}
	_, final, found := strings.Cut(rest, channel+"final")
	if !found {
		return "", true
	}
	_, answer, _ = strings.Cut(final, message)
	for _, end := range [...]string{"<|return|>", "<|end|>", "<|call|>"} {
		answer, _, _ = strings.Cut(answer, end)
	}
	return strings.TrimSpace(answer), true
}
