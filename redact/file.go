package redact

import (
	"encoding/base64"
	"strings"
)

// fileMatcher finds secrets by the file format that they are in.
type fileMatcher struct {
	*document
	manifestEnd int // end of the last manifest that was examined
}

// maxManifest is how much of a manifest around its kind is examined, in bytes.
const maxManifest = 8 << 10

// manifest finds the values of a Kubernetes Secret in YAML, under data and
// stringData. They may precede the kind, in the same document.
func (m *fileMatcher) manifest(start, end int) {
	t := m.text
	if start < m.manifestEnd || isWord(byteAt(t, end)) {
		return
	}
	from := max(m.manifestEnd, start-maxManifest)
	if i := strings.LastIndex(t[from:start], "\n---"); i >= 0 {
		from += i
	}
	rest, _, _ := strings.Cut(m.after(end, maxManifest), "\n---")
	to := end + len(rest)
	m.manifestEnd = to
	data, encoded, indent := false, false, 0
	for i := from; i < to; {
		line, _, _ := strings.Cut(t[i:min(to, i+maxAssigned)], "\n")
		trimmed := strings.TrimLeft(line, " ")
		depth := len(line) - len(trimmed)
		key, value, ok := strings.Cut(strings.TrimRight(trimmed, "\r "), ":")
		switch {
		case (key == "data" || key == "stringData") && ok && value == "":
			data, encoded, indent = true, key == "data", depth
		case trimmed != "" && (depth <= indent || trimmed[0] == '-'):
			data = false // a list belongs to another kind, such as ExternalSecret
		case data && ok && trimmed[0] != '#':
			v := strings.Trim(value, " \"'`,")
			if _, err := base64.StdEncoding.DecodeString(v); len(v) >= 4 && !isPlaceholderValue(v) && (!encoded || err == nil) {
				at := i + depth + len(key) + 1 + strings.Index(value, v)
				m.add(ruleAssignment, at, at+len(v))
			}
		}
		i += len(line) + 1
	}
}

// pgpass finds the password of a line of .pgpass:
// host:port:database:user:password.
func (m *fileMatcher) pgpass(start, end int) {
	from := m.back(start, 128, wordOr(".*-"))
	if from == start || from > 0 && m.text[from-1] != '\n' {
		return
	}
	i := end
	for range 2 {
		next := m.runTo(i, 64, wordOr(".*-@"))
		if next == i || byteAt(m.text, next) != ':' {
			return
		}
		i = next + 1
	}
	stop := m.runTo(i, maxArgument, func(c byte) bool { return c > ' ' })
	if value := m.text[i:stop]; len(value) >= 3 && !isPlaceholderValue(value) {
		m.add(rulePassword, i, stop)
	}
}

// passwordHash finds the hashes of crypt(3) and its relatives: $6$salt$hash,
// $2b$12$..., $argon2id$...
func (m *fileMatcher) passwordHash(start, end int) {
	if isWord(byteAt(m.text, start-1)) {
		return
	}
	stop := m.runTo(end, 256, wordOr("./$=,+-"))
	value := strings.TrimRight(m.text[end:stop], ".,-")
	if len(value) >= 31 && strings.IndexByte(value, '$') > 0 && distinctBytes(value) >= 12 {
		m.add(rulePassword, start, end+len(value))
	}
}
