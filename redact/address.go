package redact

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addressMatcher finds email and IP addresses and user names in home paths.
type addressMatcher struct{ *document }

// email finds an address around the @ at i. Letters of alphabets that put blanks between words may stand in it.
func (m *addressMatcher) email(i int) {
	from := i
	for from > 0 && i-from < 64 {
		r, n := utf8.DecodeLastRuneInString(m.text[:from])
		if !(r < utf8.RuneSelf && (isAlnum(byte(r)) || strings.IndexByte("._%+-'", byte(r)) >= 0)) && !isSpacedLetter(r) {
			break
		}
		from -= n
	}
	for from < i && strings.IndexByte(".'-%+", m.text[from]) >= 0 {
		from++
	}
	if i > 1 && m.text[i-1] == '"' {
		if quote := strings.LastIndexByte(m.text[max(0, i-64):i-1], '"'); quote >= 0 && strings.IndexByte(m.text[max(0, i-64)+quote:i], '\n') < 0 {
			from = max(0, i-64) + quote // "anna berg"@
		}
	}
	local := m.text[from:i]
	if local == "" || local == "git" || strings.HasSuffix(local, ".") {
		return
	}
	if from > 0 && (m.text[from-1] == ':' || m.text[from-1] == '/') && strings.Contains(m.text[max(0, from-64):from], "://") {
		return // credentials in a URL have their own rule
	}
	stop, label, dots := i+1, i+1, 0
	end := -1 // end of the last label that can end a domain
	for stop < len(m.text) && stop-i <= 253 {
		r, n := utf8.DecodeRuneInString(m.text[stop:])
		if r == '.' {
			if stop == label {
				break
			}
			dots++
			stop++
			label = stop
			continue
		}
		if !(r < utf8.RuneSelf && (isAlnum(byte(r)) || r == '-')) && !isSpacedLetter(r) {
			break
		}
		stop += n
		if dots > 0 {
			end = stop
		}
	}
	if end < 0 {
		return
	}
	domain := strings.TrimRight(m.text[i+1:end], "-")
	dot := strings.LastIndexByte(domain, '.')
	if dot <= 0 || domain[0] == '-' || !isTopLevel(domain[dot+1:]) {
		return
	}
	m.add(ruleEmail, from, i+1+len(domain))
}

// topLevel tells a top-level domain from the extension of a file such as icon@2x.png.
func isTopLevel(label string) bool {
	switch strings.ToLower(label) {
	case "png", "jpg", "jpeg", "gif", "svg", "webp", "js", "ts", "json", "css":
		return false
	}
	if strings.HasPrefix(strings.ToLower(label), "xn--") {
		return true
	}
	n := 0
	for _, r := range label {
		if !unicode.IsLetter(r) {
			return false
		}
		n++
	}
	return n >= 2 && n <= 24
}

// spacedLetter reports a letter outside ASCII of a script that separates words.
func isSpacedLetter(r rune) bool {
	return r >= utf8.RuneSelf && r != utf8.RuneError && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

// ipv6 finds an address around a colon: the whole run of hex digits, colons and dots that the colon is the first one of.
func (m *addressMatcher) ipv6(colon int) {
	in := func(c byte) bool { return isDigit(c) || lower(c) >= 'a' && lower(c) <= 'f' || c == ':' || c == '.' }
	from := colon
	for from > 0 && colon-from < 5 && in(m.text[from-1]) {
		from--
	}
	if from > 0 && (isWord(m.text[from-1]) || in(m.text[from-1])) || strings.IndexByte(m.text[from:colon], ':') >= 0 {
		return
	}
	stop := colon
	for stop < len(m.text) && stop-from < 46 && in(m.text[stop]) {
		stop++
	}
	if stop < len(m.text) && isWord(m.text[stop]) {
		return
	}
	value := strings.TrimRight(m.text[from:stop], ".")
	if n := len(value); n > 2 && value[n-1] == ':' && value[n-2] != ':' {
		value = value[:n-1]
	}
	if len(value) < 4 || strings.Count(value, ":") < 2 || !strings.ContainsAny(value, "0123456789") {
		return
	}
	addr, err := netip.ParseAddr(value)
	if err != nil || !addr.Is6() || !isPersonalAddr(addr.Unmap()) {
		return
	}
	if strings.Contains(value, "::") && strings.Count(value, ":") < 3 && strings.IndexByte(value, ':') < 3 && value[0] != ':' {
		return // a::1 and the like is code
	}
	if !m.isAddress(from, value) {
		return
	}
	m.add(ruleIP, from, from+len(value))
}

// addressed tells an address from times and ratios, which have no hex letters and short numbers: 12:34:56::78. Other than by those it is
// known by how many groups it has, by a zone or prefix behind it, or by a word before it.
func (m *addressMatcher) isAddress(from int, value string) bool {
	if strings.Count(value, ":") >= 5 {
		return true
	}
	run := 0
	for i := range len(value) {
		switch c := value[i]; {
		case !isDigit(c) && c != ':':
			return true // a letter, or an IPv4 address at the end
		case c == ':':
			run = 0
		default:
			if run++; run > 2 {
				return true
			}
		}
	}
	behind := byteAt(m.text, from+len(value))
	return behind == '%' || behind == '/' || containsAny(m.before(from, 24), []string{"ip", "addr", "host", "gateway", "dns", "server", "ping"})
}

// ipv4 finds a dotted address that begins at i and returns its end, or i. Versions are told by what stands in front.
func (m *addressMatcher) ipv4(i int) int {
	stop := i
	for stop < len(m.text) && stop-i <= 15 && (isDigit(m.text[stop]) || m.text[stop] == '.') {
		stop++
	}
	value := strings.TrimRight(m.text[i:stop], ".")
	if len(value) < 7 || strings.Count(value, ".") != 3 {
		return i
	}
	end := i + len(value)
	if end < len(m.text) && isWord(m.text[end]) || i > 0 && (isWord(m.text[i-1]) || m.text[i-1] == '.' || m.text[i-1] == '-') {
		return i
	}
	addr, err := netip.ParseAddr(value)
	if err != nil || !isPersonalAddr(addr) {
		return i
	}
	if i > 1 && m.text[i-1] == '/' && isAlnum(m.text[i-2]) {
		return i // Chrome/120.0.0.0
	}
	before := strings.TrimRight(m.before(i, 16), " :=^~\"'(")
	for _, word := range [...]string{"version", "ver.", "ver", "release", "build", " v", "firmware", "section", "§", "chapter"} {
		if strings.HasSuffix(before, word) {
			return i
		}
	}
	m.add(ruleIP, i, end)
	return end
}

// personalAddr reports whether an address says something about someone. Loopback, unspecified, multicast and netmasks
// do not. Private addresses do: they draw the map of a home or office network.
func isPersonalAddr(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() {
		return false
	}
	return !(a.Is4() && (a.As4()[0] == 255 || a.As4()[0] == 0))
}

// homePath finds the user name behind /home/, /Users/ and C:\Users\. The path around it stays.
func (m *addressMatcher) homePath(start, end int) {
	separator := m.text[end-1]
	if separator == '/' {
		drive := start > 1 && isLetter(m.text[start-1]) && m.text[start-2] == '/' && (start == 2 || start > 5 && m.text[start-6:start-2] == "/mnt")
		if start > 0 && !drive && (isWord(m.text[start-1]) || m.text[start-1] == '.' || m.text[start-1] == '-' || m.text[start-1] == ')' || m.text[start-1] == ']') {
			return // https://example.org/users/7
		}
		if m.text[start:end] == "/users/" {
			return // a REST path, not macOS
		}
	}
	stop := end
	for stop < len(m.text) && stop-end < 64 && (isWord(m.text[stop]) || m.text[stop] >= 0x80 || strings.IndexByte(".-@$", m.text[stop]) >= 0) {
		stop++
	}
	if separator == '\\' { // Windows names may hold blanks; they end at the next separator
		if next := strings.IndexByte(m.text[stop:min(len(m.text), stop+32)], '\\'); next > 0 && !strings.ContainsAny(m.text[stop:stop+next], "\n\r\"'<>:") {
			stop += next
		}
	}
	name := strings.TrimRight(m.text[end:stop], ".-")
	if name == "" || isPlaceholderValue(name) || name[0] == '.' {
		return
	}
	switch strings.ToLower(name) {
	case "shared", "public", "default", "all users", "guest", "user", "username", "linuxbrew", "runner", "vscode", "node":
		return // nobody's
	}
	m.add(ruleHomePath, end, end+len(name))
}
