package documents

import "strings"

// maxFrontMatter bounds the lines of metadata that a Markdown document begins
// with. What is longer is text.
const maxFrontMatter = 100

// markdownTitle returns the title of a Markdown document: that of its front
// matter, or else its first heading of the first level.
func markdownTitle(text string) string {
	matter, rest := frontMatter(text)
	for line := range strings.Lines(matter) {
		if title, ok := strings.CutPrefix(line, "title:"); ok {
			return strings.Trim(strings.TrimSpace(title), `"'`)
		}
	}
	for b := range readBlocks(rest, true) {
		if b.level == 1 {
			return b.text
		}
	}
	return ""
}

// frontMatter splits a text into the lines between --- that it begins with, and
// what follows them.
func frontMatter(text string) (matter, rest string) {
	at, ok := lineEnd(text, 0), strings.HasPrefix(text, "---")
	if !ok || strings.TrimSpace(text[:at]) != "---" || !strings.Contains(text[at:lineEnd(text, at)], ":") {
		return "", text // a line that is drawn
	}
	for start, n := at, 0; at < len(text) && n < maxFrontMatter; n++ {
		from := at
		at = lineEnd(text, from)
		if strings.TrimRight(text[from:at], " \t\n") == "---" {
			return text[start:from], text[at:]
		}
	}
	return "", text
}

// lineEnd returns the end of the line of s that begins at from, its \n included.
func lineEnd(s string, from int) int {
	if i := strings.IndexByte(s[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(s)
}

// atxHeading returns the level and the title of a line such as "## Title ##", or
// level 0.
func atxHeading(line string) (level int, title string) {
	trimmed := strings.TrimLeft(line, " ")
	rest := strings.TrimLeft(trimmed, "#")
	level = len(trimmed) - len(rest)
	if len(line)-len(trimmed) > 3 || level == 0 || level > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	title = strings.TrimSpace(rest)
	if open := strings.TrimRight(title, "#"); open == "" || strings.HasSuffix(open, " ") {
		title = strings.TrimSpace(open)
	}
	return level, title
}

// underline returns the level of a heading whose title is the line before this
// one, or 0: === is 1, --- is 2.
func underline(line string) int {
	line = strings.TrimRight(line, " \t")
	trimmed := strings.TrimLeft(line, " ")
	switch {
	case trimmed == "" || len(line)-len(trimmed) > 3:
		return 0
	case strings.Trim(trimmed, "=") == "":
		return 1
	case strings.Trim(trimmed, "-") == "":
		return 2
	}
	return 0
}

// isRule reports whether a line only draws a line: ---, ***, _ _ _, ===.
func isRule(line string) bool {
	marks := strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, line)
	return len(marks) >= 3 && strings.IndexByte("-*_=", marks[0]) >= 0 && strings.Trim(marks, marks[:1]) == ""
}

// fence returns the marks that open a block of code, such as ``` or ~~~~, or "".
func fence(line string) string {
	line = strings.TrimLeft(line, " \t")
	if line == "" || line[0] != '`' && line[0] != '~' {
		return ""
	}
	rest := strings.TrimLeft(line, line[:1])
	marks := line[:len(line)-len(rest)]
	if len(marks) < 3 || marks[0] == '`' && strings.Contains(rest, "`") {
		return ""
	}
	return marks
}

// closes reports whether a line ends the block of code that marks opened.
func closes(line, marks string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(marks) && strings.Trim(line, marks[:1]) == ""
}

// isItem reports whether a line begins an item of a list, a row of a table or a
// quotation, so that the line before it is complete.
func isItem(line string) bool {
	line = strings.TrimLeft(line, " \t")
	if line == "" {
		return true
	}
	if strings.IndexByte("|>", line[0]) >= 0 {
		return true
	}
	rest := strings.TrimLeft(line, "0123456789")
	if n := len(line) - len(rest); n > 0 {
		return n <= 9 && len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && rest[1] == ' '
	}
	return len(line) > 1 && strings.IndexByte("-*+", line[0]) >= 0 && line[1] == ' '
}
