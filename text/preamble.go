package text

import "strings"

// requestHeadings are in the heading under which clients put what their user
// typed, behind sections of context: "## My request for Codex:".
var requestHeadings = [...]string{"my request", "user request", "user's request", "user query", "user's query", "my question", "user's question", "user message", "user prompt", "my task"}

// maxHeading is the maximum length of such a heading, in bytes.
const maxHeading = 60

// cutPreamble returns what follows the last heading of a user's request, if a
// message begins with a heading, or else all of it.
func cutPreamble(message string) string {
	if !isHeading(strings.TrimLeft(message, " \n\r\t")) {
		return message
	}
	for end := len(message); ; {
		at := strings.LastIndex(message[:end], "\n#")
		if at < 0 {
			return message
		}
		line, rest, found := strings.Cut(message[at+1:], "\n")
		if end = at; !found || len(line) > maxHeading || !isHeading(line) {
			continue
		}
		lower := strings.ToLower(line)
		for _, h := range requestHeadings {
			if strings.Contains(lower, h) && strings.TrimSpace(rest) != "" {
				return strings.TrimSpace(rest)
			}
		}
	}
}

// isHeading reports whether a text begins with a Markdown heading.
func isHeading(s string) bool {
	rest := strings.TrimLeft(s, "#")
	return len(rest) < len(s) && strings.HasPrefix(rest, " ")
}
