package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// keyMatcher finds keys by their structure rather than by a prefix.
type keyMatcher struct {
	*document
	// pemEnd is where the next end line of a PEM block is. Up to pemSearched
	// there is none besides it.
	pemEnd, pemSearched int
}

// maxPEM is how far the end line of a key is searched, in bytes.
const maxPEM = 16 << 10

const (
	dashes     = "-----"
	pemEndLine = "-----END "
	minPEM     = 32 // shorter ones are templates
)

// pemLabel returns the length of the label of a private key at i and of the
// dashes after it, 0 if there is none.
func (m *keyMatcher) pemLabel(i int) int {
	label, _, ok := strings.Cut(m.after(i, 64), dashes)
	if !ok || !strings.Contains(label, "PRIVATE KEY") {
		return 0
	}
	return len(label) + len(dashes)
}

// pem finds a private key block. Without its end line the key reaches as far as
// the text looks like base64.
func (m *keyMatcher) pem(start, end int) {
	label := m.pemLabel(end)
	if label == 0 {
		return
	}
	body := end + label
	stop := m.endOfPEM(body)
	if stop >= 0 {
		if stop-body < minPEM {
			return
		}
		if line := strings.Index(m.after(stop+len(dashes), 80-len(dashes)), dashes); line >= 0 {
			stop += len(dashes) + line
		}
		stop += len(dashes)
	} else {
		for stop = body; stop < len(m.text) && (isBase64(m.text[stop]) || strings.IndexByte(" \t\r\n\\|", m.text[stop]) >= 0); stop++ {
			if rest := m.text[stop:]; strings.HasPrefix(rest, "\nProc-Type:") || strings.HasPrefix(rest, "\nDEK-Info:") { // of an encrypted key
				stop = m.run(stop+1, func(c byte) bool { return c != '\n' }) - 1
			}
		}
	}
	if stop-body >= minPEM {
		m.add(rulePrivateKey, start, stop)
	}
}

// pemTail finds the end of a private key whose start is elsewhere, for example
// in the message before.
func (m *keyMatcher) pemTail(start, end int) {
	from := m.back(start, maxPEM, func(c byte) bool { return isBase64(c) || c == '\n' || c == '\r' || c == '\\' })
	if label := m.pemLabel(end); label > 0 && start-from >= minPEM {
		m.add(rulePrivateKey, from, end+label)
	}
}

// endOfPEM returns where the next end line is within maxPEM bytes of i, else
// -1. Calls must be in the order of the text; nothing is read twice.
func (m *keyMatcher) endOfPEM(i int) int {
	if i > m.pemEnd {
		from := max(i, m.pemSearched-len(pemEndLine)+1)
		limit := min(len(m.text), i+maxPEM)
		if from > limit {
			return -1
		}
		at := strings.Index(m.text[from:limit], pemEndLine)
		if m.pemSearched = limit; at < 0 {
			return -1
		}
		m.pemEnd = from + at
		m.pemSearched = m.pemEnd
	}
	if m.pemEnd+len(pemEndLine) > i+maxPEM {
		return -1
	}
	return m.pemEnd
}

// putty finds the private lines of a PuTTY key, up to its MAC.
func (m *keyMatcher) putty(_, end int) {
	i := m.runTo(end, 8, func(c byte) bool { return isDigit(c) || strings.IndexByte(": \r\n", c) >= 0 })
	stop := m.run(i, func(c byte) bool { return isBase64(c) || c == '\r' || c == '\n' })
	if strings.HasPrefix(m.text[stop:], "-MAC") { // the run includes the line's first word
		stop = strings.LastIndexByte(m.text[:stop], '\n')
	}
	if stop-i >= minPEM {
		m.add(rulePrivateKey, i, stop)
	}
}

// jwt finds header.payload[.signature] if the header is base64 of a JSON
// object.
func (m *keyMatcher) jwt(start, end int) {
	if isBase64URL(byteAt(m.text, start-1)) {
		return // so that no run is read twice
	}
	dot := m.run(end, isBase64URL)
	if dot-start < 12 || !strings.HasPrefix(m.text[dot:], ".ey") {
		return
	}
	header, err := base64.RawURLEncoding.DecodeString(m.text[start:dot])
	if err != nil || header[0] != '{' || header[len(header)-1] != '}' {
		return
	}
	stop := m.run(dot+1, isBase64URL)
	if byteAt(m.text, stop) == '.' {
		if signature := m.run(stop+1, isBase64URL); signature > stop+1 {
			stop = signature
		}
	}
	if stop-dot > 12 {
		m.add(ruleJWT, start, stop)
	}
}

// wrappedJWT finds a JWT that is encoded in base64 again ("ZXlK" is "eyJ").
func (m *keyMatcher) wrappedJWT(start, end int) {
	if m.text[start:end] != "ZXlK" || isBase64(byteAt(m.text, start-1)) {
		return
	}
	stop := m.run(end, isBase64)
	inner, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(m.text[start:stop], "="))
	if err == nil && stop-start >= 60 && bytes.Contains(inner, []byte(".ey")) {
		m.add(ruleJWT, start, stop)
	}
}

// azureSecret finds an Azure AD client secret: 3 characters, a digit, Q~, 31 to
// 34 more.
func (m *keyMatcher) azureSecret(start, end int) {
	if m.text[start:end] != "Q~" || !isDigit(byteAt(m.text, start-1)) {
		return
	}
	part := wordOr("~.-")
	from, stop := m.back(start, 4, part), m.runTo(end, 35, part)
	if n := stop - end; start-from == 4 && !isWord(byteAt(m.text, from-1)) && n >= 31 && n <= 34 && distinctBytes(m.text[end:stop]) >= 12 {
		m.add(ruleAzure, from, stop)
	}
}

// mailchimp finds 32 hex digits before -us and the number of a data centre.
func (m *keyMatcher) mailchimp(start, end int) {
	stop := m.run(end, isDigit)
	from := m.back(start, 33, func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' })
	if stop > end && stop-end <= 2 && start-from == 32 && !isWord(byteAt(m.text, from-1)) {
		m.add(ruleMessaging, from, stop)
	}
}

// terraform finds an API token around its middle: 14 characters, .atlasv1., 60
// to 70 more.
func (m *keyMatcher) terraform(start, end int) {
	stop := m.run(end, wordOr("-="))
	from := m.back(start, 15, isAlnum)
	if start-from == 14 && stop-end >= 60 && stop-end <= 70 && distinctBytes(m.text[end:stop]) >= 12 {
		m.add(ruleVendor, from, stop)
	}
}

// maxmind finds a licence key before its end: 6 characters, an underscore, 29,
// _mmk.
func (m *keyMatcher) maxmind(start, end int) {
	from := m.back(start, 37, isWord)
	if key := m.text[from:start]; len(key) == 36 && key[6] == '_' && strings.IndexByte(key, '_') == 6 && distinctBytes(key) >= 12 && !isWord(byteAt(m.text, end)) {
		m.add(ruleVendor, from, end)
	}
}

// airtable finds a personal access token around its dot: pat, 14 characters, 64
// hex digits.
func (m *keyMatcher) airtable(dot int) {
	if dot < 17 || m.text[dot-17:dot-14] != "pat" || isWord(byteAt(m.text, dot-18)) {
		return
	}
	stop := m.run(dot+1, isHex)
	if stop-dot-1 == 64 && m.back(dot, 17, isAlnum) == dot-17 && distinctBytes(m.text[dot+1:stop]) >= 8 {
		m.add(ruleVendor, dot-17, stop)
	}
}

// facebook finds an app token: the 15 or 16 digits of an app id at i, a bar, 27
// to 40 characters. It returns its end, or i.
func (m *keyMatcher) facebook(i, stop int) int {
	if n := stop - i; n != 15 && n != 16 || byteAt(m.text, stop) != '|' {
		return i
	}
	end := m.run(stop+1, isBase64URL)
	if n := end - stop - 1; n < 27 || n > 40 || distinctBytes(m.text[stop+1:end]) < 8 {
		return i
	}
	m.add(ruleVendor, i, end)
	return end
}

// awsAccount finds the twelve digits assigned to an AWS account id.
func (m *keyMatcher) awsAccount(_, end int) {
	from := m.run(end, in("\"' :=>"))
	stop := m.run(from, func(c byte) bool { return isDigit(c) || c == '-' })
	if digits := strings.ReplaceAll(m.text[from:stop], "-", ""); from > end && len(digits) == 12 {
		m.add(ruleAWS, from, stop)
	}
}

// discord finds a bot token around its first dot: 24-26 characters, 6, 27-38.
func (m *keyMatcher) discord(dot int) {
	if dot < 24 || dot+34 >= len(m.text) || m.text[dot+7] != '.' {
		return
	}
	from := m.back(dot, 27, isBase64URL)
	stop := m.run(dot+8, isBase64URL)
	if n := dot - from; n < 24 || n > 26 || stop-dot-8 < 27 || m.run(dot+1, isBase64URL) != dot+7 {
		return
	}
	if c := m.text[from]; c >= 'A' && c <= 'O' && distinctBytes(m.text[from:stop]) >= 16 {
		m.add(ruleMessaging, from, stop)
	}
}

// telegram finds a bot token around its colon: 7-10 digits, 35 characters that
// start with A.
func (m *keyMatcher) telegram(colon int) {
	if colon < 7 || byteAt(m.text, colon+1) != 'A' {
		return
	}
	from := m.back(colon, 11, isDigit)
	stop := m.run(colon+1, isBase64URL)
	id, key := colon-from, stop-colon-1
	if id < 7 || id > 10 || key < 34 || key > 35 || isWord(byteAt(m.text, from-1)) && !strings.HasSuffix(m.text[:from], "/bot") {
		return
	}
	m.add(ruleMessaging, from, stop)
}
