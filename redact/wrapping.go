package redact

import (
	"strings"
)

// What stands around an assigned value, or between it and its name, in some formats.

// unwrapped skips what Markdown puts in front of a value: the end of an emphasis, the line that opens a code fence.
func (m *assignmentMatcher) skipMarkdown(i int) int {
	t := m.text
	if rest := strings.TrimLeft(t[i:min(len(t), i+3)], "*_"); len(rest) > 0 && rest[0] == ' ' && t[i] != ' ' {
		for i < len(t) && strings.IndexByte("*_ ", t[i]) >= 0 {
			i++
		}
	}
	if !strings.HasPrefix(t[i:], "```") {
		return i
	}
	line := strings.IndexByte(t[i:min(len(t), i+maxGap)], '\n')
	if line < 0 || strings.Trim(strings.ToLower(t[i+3:i+line]), "abcdefghijklmnopqrstuvwxyz0123456789\r") != "" {
		return i
	}
	return i + line + 1
}

// typedLiteral skips a type and an equals sign in front of a literal (let secret: String = "..."), if i begins with them.
func (m *assignmentMatcher) skipType(i int) int {
	t := m.text
	at := i
	for at < len(t) && at-i < maxGap && (isWord(t[at]) || strings.IndexByte("<>?.&'", t[at]) >= 0) {
		at++
	}
	if at == i || !strings.HasPrefix(t[at:], " = ") || at+3 >= len(t) || strings.IndexByte("\"'`", t[at+3]) < 0 {
		return i
	}
	return at + 3
}

// terraformDefault returns where the default of the variable begins whose name ends before i, or -1.
func (m *assignmentMatcher) terraformDefault(i int) int {
	t := m.text
	if i >= len(t) || t[i] != '{' || !strings.Contains(m.before(i, maxName+16), `variable "`) {
		return -1
	}
	block := t[i:min(len(t), i+200)]
	if end := strings.IndexByte(block, '}'); end >= 0 {
		block = block[:end]
	}
	at := strings.Index(block, "default")
	if at < 0 {
		return -1
	}
	rest := strings.TrimLeft(block[at+len("default"):], " \t")
	if !strings.HasPrefix(rest, "=") {
		return -1
	}
	return i + len(block) - len(rest) + 1
}

// isDocker reports that the identifier around i is the name in an ENV or ARG line of a Dockerfile, whose value may follow
// a blank.
func (m *assignmentMatcher) isDockerfileName(i int) bool {
	from := m.back(i, maxName, isWord)
	line, ok := strings.CutSuffix(m.text[max(0, from-5):from], "ENV ")
	return ok && (line == "" || line == "\n")
}

// inTable reports that a cell with a single word that is no plain one begins at i.
func (m *assignmentMatcher) isTableCell(i int) bool {
	t := m.text
	stop := m.runTo(i, maxName, func(c byte) bool { return c > ' ' && c != '|' })
	return stop > i && strings.HasPrefix(t[stop:], " |") && hasDigitAndLetter(t[i:stop])
}

// connectionKeys are names of which one stands in every connection string with a password.
var connectionKeys = []string{"server=", "data source=", "host=", "uid=", "user id=", "user=", "username=", "driver=", "database=", "endpoint=", "jdbc:"}

// inConnectionString reports that the identifier around i follows a semicolon, as in Server=...;Pwd=...
func (m *assignmentMatcher) inConnectionString(i int) bool {
	from := m.back(i, maxName, func(c byte) bool { return isWord(c) || c == ' ' })
	return from > 0 && m.text[from-1] == ';' && containsAny(m.before(from, 160), connectionKeys)
}

// connectionValue returns the value at i: up to a semicolon, or in braces, in which a closing one is doubled (ODBC).
func (m *assignmentMatcher) connectionValue(i int) (from, stop int) {
	t := m.text
	limit := min(len(t), i+maxAssigned)
	if i < limit && t[i] == '{' && i+1 < limit && t[i+1] != '{' {
		for stop = i + 1; stop < limit && t[stop] != '\n'; stop++ {
			if t[stop] == '}' {
				if stop+1 == limit || t[stop+1] != '}' {
					return i + 1, stop
				}
				stop++
			}
		}
	}
	for stop = i; stop < limit && t[stop] >= ' ' && strings.IndexByte(";\"'`", t[stop]) < 0; stop++ {
	}
	return i, stop
}

// encodedValue parses the value of a name that ends before i where quotes, colon and equals sign are encoded for a URL.
func (m *assignmentMatcher) encodedValue(i int) (from, stop int, quoted, ok bool) {
	t := m.text
	assigned := false
	for i+3 <= len(t) && t[i] == '%' {
		switch strings.ToLower(t[i+1 : i+3]) {
		case "3a", "3d":
			assigned = true
		case "22", "27":
			quoted = assigned
		case "20":
		default:
			assigned = false
		}
		i += 3
		if quoted {
			break
		}
		if i < len(t) && !assigned && t[i] != '%' {
			return 0, 0, false, false
		}
	}
	if !assigned {
		return 0, 0, false, false
	}
	limit := min(len(t), i+maxAssigned)
	for stop = i; stop < limit && (isBase64URL(t[stop]) || strings.IndexByte("%.~!*+", t[stop]) >= 0); stop++ {
		if t[stop] == '%' && stop+3 <= limit && strings.Contains("22 26 27 2c 3b 7d", strings.ToLower(t[stop+1:stop+3])) {
			break
		}
	}
	return i, stop, quoted, stop > i
}

// closesElement reports that the text between i and stop is all of an XML element: <x>value</x>.
func closesElement(text string, i, stop int) bool {
	if i == 0 || text[i-1] != '>' || !strings.HasPrefix(text[stop:], "</") {
		return false
	}
	open := strings.LastIndexByte(text[max(0, i-maxName):i], '<')
	if open < 0 {
		return false
	}
	name := text[max(0, i-maxName)+open+1 : i-1]
	return strings.HasPrefix(text[stop+2:], name+">")
}

// constructors make a value of the literal that they are given.
var constructors = []string{"from", "new", "some", "string", "str", "bytes", "secretstr", "secretstring", "just", "of", "secret"}

// constructed returns where the literal begins that is the argument of a constructor, whose name stands between i and
// stop, else 0.
func constructorLiteral(text string, i, stop int) int {
	if text[stop] != '(' || stop+1 >= len(text) || strings.IndexByte("\"'`", text[stop+1]) < 0 {
		return 0
	}
	name := text[i:stop]
	if !isOneOf(name[strings.LastIndexAny(name, ".:")+1:], constructors) {
		return 0
	}
	return stop + 1
}

// isParameter reports that rest begins with the next parameter of a form or query: name=.
func isParameter(rest string) bool {
	for i := range min(len(rest), maxName) {
		if c := rest[i]; c == '=' {
			return i > 0
		} else if !isWord(c) && c != '-' && c != '.' {
			return false
		}
	}
	return false
}
