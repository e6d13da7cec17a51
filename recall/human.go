package recall

import "strings"

// HumanWords is what of a message a human typed: without the wrapper elements of agents, recalled blocks, long fenced
// code and quoted files. It may be empty: then there is nothing to recall for and nothing to remember.
func HumanWords(message string) string { return humanWords(message) }

// CutElements cuts elements of these names away, <name ...>...</name>, as HumanWords does with those that it knows.
func CutElements(message string, names []string) string {
	if len(names) == 0 || !strings.Contains(message, "<") {
		return message
	}
	for _, n := range names {
		message = cutElement(message, n)
	}
	return message
}
