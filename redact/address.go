package redact

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addressMatcher finds email and IP addresses and user names in home paths.
type addressMatcher struct{ *document }

// email finds an address around the @ at i. It may have letters of scripts that
// separate words.
func (m *addressMatcher) email(i int) {
	from := i
	for from > 0 && i-from < 64 {
		r, n := utf8.DecodeLastRuneInString(m.text[:from])
		if !isAddressRune(r, "._%+-'") {
			break
		}
		from -= n
	}
	from = m.runTo(from, i-from, in(".'-%+"))
	if byteAt(m.text, i-1) == '"' && i > 1 {
		window := m.text[max(0, i-64) : i-1]
		if quote := strings.LastIndexByte(window, '"'); quote >= 0 && !strings.Contains(window[quote:], "\n") {
			from = i - 1 - len(window) + quote // "anna berg"@
		}
	}
	local := m.text[from:i]
	if local == "" || local == "git" || strings.HasSuffix(local, ".") {
		return
	}
	if c := byteAt(m.text, from-1); (c == ':' || c == '/') && strings.Contains(m.text[max(0, from-64):from], "://") {
		return // credentials in a URL have their own rule
	}
	stop := i + 1
	for stop < len(m.text) && stop-i <= 253 {
		r, n := utf8.DecodeRuneInString(m.text[stop:])
		if !isAddressRune(r, "-.") || r == '.' && m.text[stop-1] == '.' {
			break
		}
		stop += n
	}
	domain := strings.TrimRight(m.text[i+1:stop], "-.")
	dot := strings.LastIndexByte(domain, '.')
	if dot <= 0 || domain[0] == '-' || domain[0] == '.' || !isTopLevel(domain[dot+1:]) {
		return
	}
	m.add(ruleEmail, from, i+1+len(domain))
}

// isAddressRune reports whether r is a letter, a digit or one of marks.
func isAddressRune(r rune, marks string) bool {
	if r < utf8.RuneSelf {
		return isAlnum(byte(r)) || strings.IndexByte(marks, byte(r)) >= 0
	}
	return r != utf8.RuneError && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

// isTopLevel reports whether label may be a top-level domain, and not the
// extension of a file such as icon@2x.png.
func isTopLevel(label string) bool {
	switch strings.ToLower(label) {
	case "png", "jpg", "jpeg", "gif", "svg", "webp", "js", "ts", "json", "css":
		return false
	}
	if strings.HasPrefix(strings.ToLower(label), "xn--") {
		return true
	}
	n := utf8.RuneCountInString(label)
	return n >= 2 && n <= 24 && strings.IndexFunc(label, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// obfuscatedAts and obfuscatedDots are ways to hide an @ and a dot from
// programs, or to encode them. Blanks may surround those in brackets.
var (
	obfuscatedAts  = []string{"(at)", "[at]", "{at}", "<at>", " at ", `\u0040`}
	obfuscatedDots = []string{" (dot) ", " [dot] ", "(dot)", "[dot]", "{dot}", " dot ", "."}
)

// obfuscatedEmail finds an address around one of obfuscatedAts. " at " is also
// a word, so it requires an obfuscated dot.
func (m *addressMatcher) obfuscatedEmail(start, end int) {
	t := m.text
	word := t[start] == ' '
	if strings.IndexByte("([{<", t[start]) >= 0 {
		start, end = m.back(start, 1, isBlank), m.runTo(end, 1, isBlank)
	}
	from := m.back(start, 64, func(c byte) bool { return isAlnum(c) || strings.IndexByte("._%+-", c) >= 0 })
	if from == start || !isAlnum(t[from]) {
		return
	}
	labels, i, stop, last := 0, end, 0, ""
	for labels < 8 {
		label := m.runTo(i, 63, func(c byte) bool { return isAlnum(c) || c == '-' })
		if label == i {
			break
		}
		labels, stop, last = labels+1, label, t[i:label]
		dot := 0
		for _, w := range obfuscatedDots {
			if rest := t[label:]; len(rest) > len(w) && strings.EqualFold(rest[:len(w)], w) {
				dot = len(w)
				break
			}
		}
		if dot == 0 || word && labels == 1 && dot == 1 {
			break
		}
		i = label + dot
	}
	if labels >= 2 && isTopLevel(last) {
		m.add(ruleEmail, from, stop)
	}
}

// ipv6 finds an address around its first colon: a run of hex digits, colons and
// dots.
func (m *addressMatcher) ipv6(colon int) {
	part := func(c byte) bool { return isHex(c) || c == ':' || c == '.' }
	from := m.back(colon, 5, part)
	if before := byteAt(m.text, from-1); isWord(before) || part(before) || strings.IndexByte(m.text[from:colon], ':') >= 0 {
		return
	}
	stop := m.runTo(from, 46, part)
	if isWord(byteAt(m.text, stop)) {
		return
	}
	value := strings.TrimRight(m.text[from:stop], ".")
	if n := len(value); n > 2 && value[n-1] == ':' && value[n-2] != ':' {
		value = value[:n-1]
	}
	colons := strings.Count(value, ":")
	if len(value) < 4 || colons < 2 || !strings.ContainsAny(value, "0123456789") {
		return
	}
	addr, err := netip.ParseAddr(value)
	if err != nil || !addr.Is6() || !isPersonalAddr(addr.Unmap()) {
		return
	}
	if strings.Contains(value, "::") && colons < 3 && strings.IndexByte(value, ':') < 3 && value[0] != ':' {
		return // a::1 and the like is code
	}
	if m.isAddress(from, value) {
		m.add(ruleIP, from, from+len(value))
	}
}

// isAddress reports whether value is an address and not a time or ratio, which
// has no letters and short numbers: 12:34:56::78. Besides those, the number of
// groups, a zone or prefix after it, or a word before it decides.
func (m *addressMatcher) isAddress(from int, value string) bool {
	if strings.Count(value, ":") >= 5 || strings.Trim(value, "0123456789:") != "" {
		return true
	}
	for group := range strings.SplitSeq(value, ":") {
		if len(group) > 2 {
			return true
		}
	}
	after := byteAt(m.text, from+len(value))
	return after == '%' || after == '/' || containsAny(m.before(from, 24), []string{"ip", "addr", "host", "gateway", "dns", "server", "ping"})
}

// versionWords before a dotted number show that it is a version or a section.
var versionWords = []string{"version", "ver.", "ver", "release", "build", " v", "firmware", "section", "§", "chapter"}

// ipv4 finds a dotted address that begins at i and returns its end, or i.
func (m *addressMatcher) ipv4(i int) int {
	stop := m.runTo(i, 16, func(c byte) bool { return isDigit(c) || c == '.' })
	value := strings.TrimRight(m.text[i:stop], ".")
	end := i + len(value)
	before := byteAt(m.text, i-1)
	if len(value) < 7 || strings.Count(value, ".") != 3 || isWord(byteAt(m.text, end)) || isWord(before) || before == '.' || before == '-' {
		return i
	}
	addr, err := netip.ParseAddr(value)
	if err != nil || !isPersonalAddr(addr) || before == '/' && isAlnum(byteAt(m.text, i-2)) { // Chrome/120.0.0.0
		return i
	}
	lead := strings.TrimRight(m.before(i, 16), " :=^~\"'(")
	if slices.ContainsFunc(versionWords, func(word string) bool { return strings.HasSuffix(lead, word) }) {
		return i
	}
	m.add(ruleIP, i, end)
	return end
}

// isPersonalAddr reports whether an address identifies someone. Loopback,
// unspecified and multicast addresses and netmasks do not. Private addresses
// do: they describe a home or office network.
func isPersonalAddr(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() {
		return false
	}
	return !(a.Is4() && (a.As4()[0] == 255 || a.As4()[0] == 0))
}

// homePath finds the user name after /home/, /Users/ and C:\Users\. The path
// around it stays.
func (m *addressMatcher) homePath(start, end int) {
	t := m.text
	windows := t[end-1] == '\\'
	if !windows {
		drive := start > 1 && isLetter(t[start-1]) && t[start-2] == '/' && (start == 2 || start > 5 && t[start-6:start-2] == "/mnt")
		if c := byteAt(t, start-1); !drive && (isWord(c) || c != 0 && strings.IndexByte(".-)]", c) >= 0) {
			return // https://example.org/users/7
		}
		if t[start:end] == "/users/" {
			return // a REST path, not macOS
		}
	}
	stop := m.runTo(end, 64, func(c byte) bool { return isWord(c) || c >= 0x80 || strings.IndexByte(".-@$", c) >= 0 })
	if windows { // names may have blanks; they end at the next separator
		if next := strings.IndexByte(m.after(stop, 32), '\\'); next > 0 && !strings.ContainsAny(t[stop:stop+next], "\n\r\"'<>:") {
			stop += next
		}
	}
	name := strings.TrimRight(t[end:stop], ".-")
	if name == "" || isPlaceholderValue(name) || name[0] == '.' {
		return
	}
	switch strings.ToLower(name) {
	case "shared", "public", "default", "all users", "guest", "user", "username", "linuxbrew", "runner", "vscode", "node":
		return // not a person
	}
	m.add(ruleHomePath, end, end+len(name))
}
