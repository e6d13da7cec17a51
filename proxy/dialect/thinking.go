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
