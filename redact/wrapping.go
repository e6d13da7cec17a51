package redact

import (
	"strings"
)

// This file handles formats that put something between a name and its value, or
// around the value.

// skipMarkdown skips what Markdown puts before a value: the end of an emphasis,
// the line that opens a code fence.
func (m *assignmentMatcher) skipMarkdown(i int) int {
	if rest := strings.TrimLeft(m.after(i, 3), "*_"); len(rest) > 0 && rest[0] == ' ' && m.text[i] != ' ' {
		i = m.run(i, in("*_ "))
	}
	fence, _, ok := strings.Cut(m.after(i, maxGap), "\n")
	language, fenced := strings.CutPrefix(fence, "```")
	if !ok || !fenced || strings.Trim(strings.ToLower(language), "abcdefghijklmnopqrstuvwxyz0123456789\r") != "" {
		return i
	}
	return i + len(fence) + 1
}

// skipType skips a type and an equals sign before a literal at i, if there are
// any (let secret: String = "...").
func (m *assignmentMatcher) skipType(i int) int {
	at := m.runTo(i, maxGap, wordOr("<>?.&'"))
	if at > i && strings.HasPrefix(m.text[at:], " = ") && at+3 < len(m.text) && strings.IndexByte("\"'`", m.text[at+3]) >= 0 {
		return at + 3
	}
	return i
}

// terraformDefault returns the start of the default of the variable whose name
// ends before i, or -1.
func (m *assignmentMatcher) terraformDefault(i int) int {
	if byteAt(m.text, i) != '{' || !strings.Contains(m.before(i, maxName+16), `variable "`) {
		return -1
	}
	block, _, _ := strings.Cut(m.after(i, 200), "}")
	_, rest, _ := strings.Cut(block, "default")
	rest = strings.TrimLeft(rest, " \t")
	if !strings.HasPrefix(rest, "=") {
		return -1
	}
	return i + len(block) - len(rest) + 1
}

// isDockerfileName reports whether the identifier around i is the name in an
// ENV line of a Dockerfile, whose value may follow a blank.
func (m *assignmentMatcher) isDockerfileName(i int) bool {
	from := m.back(i, maxName, isWord)
	line, ok := strings.CutSuffix(m.text[max(0, from-5):from], "ENV ")
	return ok && (line == "" || line == "\n")
}

// isTableCell reports whether a table cell with one word begins at i, which has
// both digits and letters.
func (m *assignmentMatcher) isTableCell(i int) bool {
	stop := m.runTo(i, maxName, func(c byte) bool { return c > ' ' && c != '|' })
	return stop > i && strings.HasPrefix(m.text[stop:], " |") && hasDigitAndLetter(m.text[i:stop])
}

// connectionKeys are names that connection strings with a password have.
var connectionKeys = []string{"server=", "data source=", "host=", "uid=", "user id=", "user=", "username=", "driver=", "database=", "endpoint=", "jdbc:"}

// inConnectionString reports whether the identifier around i follows a
// semicolon, as in Server=...;Pwd=...
func (m *assignmentMatcher) inConnectionString(i int) bool {
	from := m.back(i, maxName, wordOr(" "))
	return byteAt(m.text, from-1) == ';' && containsAny(m.before(from, 160), connectionKeys)
}

// connectionValue returns the value at i: up to a semicolon, or in braces,
// where a closing one is doubled (ODBC).
func (m *assignmentMatcher) connectionValue(i int) (from, stop int) {
	value := m.after(i, maxAssigned)
	if strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "{{") {
		line, _, _ := strings.Cut(value, "\n")
		if end := strings.IndexByte(strings.ReplaceAll(line, "}}", "  "), '}'); end > 0 {
			return i + 1, i + end
		}
	}
	return i, m.runTo(i, maxAssigned, func(c byte) bool { return c >= ' ' && strings.IndexByte(";\"'`", c) < 0 })
}

// closesElement reports whether the text between i and stop is all of an XML
// element: <x>value</x>.
func closesElement(text string, i, stop int) bool {
	before := text[max(0, i-maxName):i]
	open := strings.LastIndexByte(before, '<')
	return open >= 0 && strings.HasSuffix(before, ">") && strings.HasPrefix(text[stop:], "</"+before[open+1:])
}

// constructors make a value of a literal.
var constructors = []string{"from", "new", "some", "string", "str", "bytes", "secretstr", "secretstring", "just", "of", "secret"}

// constructorLiteral returns the start of the literal that is the argument of
// the constructor named between i and stop, else 0.
func constructorLiteral(text string, i, stop int) int {
	quote := byteAt(text, stop+1)
	name := text[i:stop]
	if text[stop] != '(' || quote != '"' && quote != '\'' && quote != '`' || !isOneOf(name[strings.LastIndexAny(name, ".:")+1:], constructors) {
		return 0
	}
	return stop + 1
}

// isParameter reports whether rest begins with the next parameter of a form or
// query: name=.
func isParameter(rest string) bool {
	for i := range min(len(rest), maxName) {
		if c := rest[i]; c == '=' {
			return i > 0
		} else if !isBase64URL(c) && c != '.' {
			return false
		}
	}
	return false
}
