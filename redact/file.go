package redact

import (
	"encoding/base64"
	"strings"
)

// Secrets told by the file that they stand in.

// fileMatcher finds secrets by the file format that they are in.
type fileMatcher struct {
	*document
	manifestEnd int // end of the last manifest that was examined
}

// maxManifest is how much of a manifest around its kind is looked at, in bytes.
const maxManifest = 8 << 10

// manifest finds the values of a Kubernetes Secret, under data and stringData, in YAML. They may stand in front of the
// kind, in the same document.
func (m *fileMatcher) manifest(start, end int) {
	t := m.text
	if start < m.manifestEnd || isWord(byteAt(t, end)) {
		return
	}
	from := max(m.manifestEnd, start-maxManifest)
	if i := strings.LastIndex(t[from:start], "\n---"); i >= 0 {
		from += i
	}
	to := min(len(t), end+maxManifest)
	if i := strings.Index(t[end:to], "\n---"); i >= 0 {
		to = end + i
	}
	m.manifestEnd = to
	data, encoded, indent := false, false, 0
	for i := from; i < to; {
		line := t[i:min(to, i+maxAssigned)]
		if n := strings.IndexByte(line, '\n'); n >= 0 {
			line = line[:n]
		}
		trimmed := strings.TrimLeft(line, " ")
		depth := len(line) - len(trimmed)
		key, value, ok := strings.Cut(strings.TrimRight(trimmed, "\r "), ":")
		switch {
		case (key == "data" || key == "stringData") && ok && value == "":
			data, encoded, indent = true, key == "data", depth
		case trimmed != "" && (depth <= indent || trimmed[0] == '-'):
			data = false // a list is of another kind, such as ExternalSecret
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

// pgpass finds the password of a line of .pgpass: host:port:database:user:password.
func (m *fileMatcher) pgpass(start, end int) {
	t := m.text
	from := m.back(start, 128, func(c byte) bool { return isWord(c) || strings.IndexByte(".*-", c) >= 0 })
	if from == start || from > 0 && t[from-1] != '\n' {
		return
	}
	i := end
	for range 2 {
		next := m.runTo(i, 64, func(c byte) bool { return isWord(c) || strings.IndexByte(".*-@", c) >= 0 })
		if next == i || byteAt(t, next) != ':' {
			return
		}
		i = next + 1
	}
	stop := m.runTo(i, maxArgument, func(c byte) bool { return c > ' ' })
	if value := t[i:stop]; len(value) >= 3 && !isPlaceholderValue(value) {
		m.add(rulePassword, i, stop)
	}
}

// passwordHash finds what crypt(3) and its kin make of a password: $6$salt$hash, $2b$12$..., $argon2id$...
func (m *fileMatcher) passwordHash(start, end int) {
	if start > 0 && isWord(m.text[start-1]) {
		return
	}
	stop := m.runTo(end, 256, isHashByte)
	for stop > end && strings.IndexByte(".,-", m.text[stop-1]) >= 0 {
		stop--
	}
	if value := m.text[end:stop]; len(value) >= 31 && strings.IndexByte(value, '$') > 0 && distinctBytes(value) >= 12 {
		m.add(rulePassword, start, stop)
	}
}

func isHashByte(c byte) bool {
	switch c {
	case '.', '/', '$', '=', ',', '+', '-', '_':
		return true
	}
	return isAlnum(c)
}
