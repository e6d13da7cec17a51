package imports

import (
	"iter"
	"regexp"
	"strings"
)

// statement is a paragraph, a list item or a heading of Markdown.
type statement struct {
	text    string
	heading bool
}

var (
	listItem = regexp.MustCompile(`^\s*(?:[-*+•]|\d{1,9}[.)])\s+(\S.*)$`)
	heading  = regexp.MustCompile(`^\s{0,3}#{1,6}(?:\s|$)`)
	ruler    = regexp.MustCompile(`^\s{0,3}(?:-\s*-\s*-|\*\s*\*\s*\*|_\s*_\s*_)[-*_\s]*$`)

	// A paragraph that is bold and nothing else is how Claude writes headings.
	boldLine = regexp.MustCompile(`^\*\*[^*]+\*\*:?$`)
)

// statements splits Markdown. The lines of a paragraph, or of a list item, are
// joined by a space.
func statements(text string) iter.Seq[statement] {
	return func(yield func(statement) bool) {
		var open []string
		item := false
		end := func() bool {
			s := statement{text: strings.Join(open, " ")}
			s.heading = !item && boldLine.MatchString(s.text)
			open, item = nil, false
			return s.text == "" || yield(s)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n \t")
			found := listItem.FindStringSubmatch(line)
			going := true
			switch {
			case strings.TrimSpace(line) == "", ruler.MatchString(line):
				going = end()
			case heading.MatchString(line):
				going = end() && yield(statement{line, true})
			case found != nil:
				going = end()
				open, item = []string{strings.TrimSpace(found[1])}, true
			default:
				open = append(open, strings.TrimSpace(line))
			}
			if !going {
				return
			}
		}
		end()
	}
}
