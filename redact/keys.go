package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// Secrets that are told by their structure rather than by a prefix.

// keyMatcher finds keys by their structure rather than by a prefix.
type keyMatcher struct {
	*document
	// pemEnd is where the next end line of a PEM block is. If it is at or after
	// pemSearched it is unknown: there is none before.
	pemEnd, pemSearched int
}

// putty finds the private lines of a key of PuTTY's, up to its MAC.
func (m *keyMatcher) putty(_, end int) {
	t := m.text
	i := m.runTo(end, 8, func(c byte) bool { return isDigit(c) || strings.IndexByte(": \r\n", c) >= 0 })
	stop := m.run(i, func(c byte) bool { return isBase64(c) || c == '\r' || c == '\n' })
	if behind := stop; strings.HasPrefix(t[behind:], "-MAC") { // the run has eaten its first word
		stop = strings.LastIndexByte(t[:behind], '\n')
	}
	if stop-i >= 32 {
		m.add(rulePrivateKey, i, stop)
	}
}

// maxPEM is how far the end line of a key is looked for, in bytes.
const maxPEM = 16 << 10

// pem finds a private key block. Without its end line the key reaches as far as text looks like base64.
func (m *keyMatcher) pem(start, end int) {
	const dashes = "-----"
	label := strings.Index(m.text[end:min(len(m.text), end+64)], dashes)
	if label < 0 || !strings.Contains(m.text[end:end+label], "PRIVATE KEY") {
		return
	}
	body := end + label + len(dashes)
	stop := body
	if close := m.endOfPEM(body) - body; close >= 0 {
		stop = body + close
		if line := strings.Index(m.text[stop+len(dashes):min(len(m.text), stop+80)], dashes); line >= 0 {
			stop += len(dashes) + line + len(dashes)
		}
		if close < 32 {
			return // a template
		}
	} else {
		for stop < len(m.text) && isPEMByte(m.text[stop]) {
			if m.text[stop] == '\n' { // the head of an encrypted key
				for _, head := range [...]string{"Proc-Type:", "DEK-Info:"} {
					if strings.HasPrefix(m.text[stop+1:], head) {
						stop += len(head)
						for stop+1 < len(m.text) && m.text[stop+1] != '\n' {
							stop++
						}
					}
				}
			}
			stop++
		}
		if stop-body < 32 {
			return
		}
	}
	m.add(rulePrivateKey, start, stop)
}

// inPEM says what stands between the lines of a key, also where they are numbered.
func isPEMByte(c byte) bool { return isBase64(c) || strings.IndexByte(" \t\r\n\\|", c) >= 0 }

// pemTail finds the end of a private key whose beginning is elsewhere, as in the message before.
func (m *keyMatcher) pemTail(start, end int) {
	const dashes = "-----"
	label := strings.Index(m.text[end:min(len(m.text), end+64)], dashes)
	if label < 0 || !strings.Contains(m.text[end:end+label], "PRIVATE KEY") {
		return
	}
	from := m.back(start, maxPEM, func(c byte) bool { return isBase64(c) || c == '\n' || c == '\r' || c == '\\' })
	if start-from >= 32 {
		m.add(rulePrivateKey, from, end+label+len(dashes))
	}
}

// endOfPEM returns where the next end line stands within maxPEM bytes of i, else -1. Calls come in the order of the text,
// and nothing is read twice.
func (m *keyMatcher) endOfPEM(i int) int {
	const line = "-----END "
	if i > m.pemEnd {
		from := max(i, m.pemSearched-len(line)+1)
		limit := min(len(m.text), i+maxPEM)
		if from > limit {
			return -1
		}
		at := strings.Index(m.text[from:limit], line)
		if m.pemSearched = limit; at < 0 {
			return -1
		}
		m.pemEnd = from + at
		m.pemSearched = m.pemEnd
	}
	if m.pemEnd+len(line) > i+maxPEM {
		return -1
	}
	return m.pemEnd
}

// jwt finds header.payload[.signature] where the header really is base64 of a JSON object.
func (m *keyMatcher) jwt(start, end int) {
	if start > 0 && isBase64URL(m.text[start-1]) {
		return // so that no run is read twice
	}
	dot := m.run(end, isBase64URL)
	if dot-start < 12 || dot+3 >= len(m.text) || m.text[dot] != '.' || m.text[dot+1:dot+3] != "ey" {
		return
	}
	header, err := base64.RawURLEncoding.DecodeString(m.text[start:dot])
	if err != nil || header[0] != '{' || header[len(header)-1] != '}' {
		return
	}
	stop := m.run(dot+1, isBase64URL)
	if stop < len(m.text) && m.text[stop] == '.' {
		if signature := m.run(stop+1, isBase64URL); signature > stop+1 {
			stop = signature
		}
	}
	if stop-dot > 12 {
		m.add(ruleJWT, start, stop)
	}
}

// wrappedJWT finds a JWT that was encoded in base64 once more ("ZXlK" is "eyJ").
func (m *keyMatcher) wrappedJWT(start, end int) {
	if m.text[start:end] != "ZXlK" || start > 0 && isBase64(m.text[start-1]) {
		return
	}
	stop := m.run(end, isBase64)
	inner, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(m.text[start:stop], "="))
	if err == nil && stop-start >= 60 && bytes.Contains(inner, []byte(".ey")) {
		m.add(ruleJWT, start, stop)
	}
}

// azureSecret finds an Azure AD client secret: 3 characters, a digit, Q~, 31 to 34 more.
func (m *keyMatcher) azureSecret(start, end int) {
	if m.text[start:end] != "Q~" || start < 4 || !isDigit(m.text[start-1]) {
		return
	}
	word := func(c byte) bool { return isWord(c) || c == '~' || c == '.' || c == '-' }
	from, stop := start-4, m.runTo(end, 35, word)
	if !word(m.text[from]) || !word(m.text[from+1]) || !word(m.text[from+2]) || from > 0 && isWord(m.text[from-1]) {
		return
	}
	if n := stop - end; n >= 31 && n <= 34 && distinctBytes(m.text[end:stop]) >= 12 {
		m.add(ruleAzure, from, stop)
	}
}

// mailchimp finds 32 hex digits before -us and a data centre number.
func (m *keyMatcher) mailchimp(start, end int) {
	stop := m.run(end, isDigit)
	from := m.back(start, 33, func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' })
	if stop > end && stop-end <= 2 && start-from == 32 && (from == 0 || !isWord(m.text[from-1])) {
		m.add(ruleMessaging, from, stop)
	}
}

// terraform finds an API token around its middle: 14 characters, .atlasv1., 60 to 70.
func (m *keyMatcher) terraform(start, end int) {
	stop := m.run(end, func(c byte) bool { return isBase64URL(c) || c == '=' })
	from := m.back(start, 15, isAlnum)
	if start-from == 14 && stop-end >= 60 && stop-end <= 70 && distinctBytes(m.text[end:stop]) >= 12 {
		m.add(ruleVendor, from, stop)
	}
}

// maxmind finds a licence key before its end: 6 characters, an underscore, 29, _mmk.
func (m *keyMatcher) maxmind(start, end int) {
	from := m.back(start, 37, isWord)
	if key := m.text[from:start]; len(key) == 36 && strings.IndexByte(key, '_') == 6 && distinctBytes(key) >= 12 && (end == len(m.text) || !isWord(m.text[end])) {
		m.add(ruleVendor, from, end)
	}
}

// airtable finds a personal access token around its dot: pat, 14 characters, 64 hex digits.
func (m *keyMatcher) airtable(dot int) {
	if dot < 17 || m.text[dot-17:dot-14] != "pat" || dot > 17 && isWord(m.text[dot-18]) {
		return
	}
	stop := m.run(dot+1, isHex)
	if stop-dot-1 == 64 && m.back(dot, 17, isAlnum) == dot-17 && distinctBytes(m.text[dot+1:stop]) >= 8 {
		m.add(ruleVendor, dot-17, stop)
	}
}

// facebook finds an app token: the 15 or 16 digits of an app's id that begin at i, a bar, 27 to 40 characters.
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
	from := m.run(end, func(c byte) bool { return strings.IndexByte("\"' :=>", c) >= 0 })
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
	if c := m.text[from]; c < 'A' || c > 'O' || distinctBytes(m.text[from:stop]) < 16 {
		return
	}
	m.add(ruleMessaging, from, stop)
}

// telegram finds a bot token around its colon: 7-10 digits, 35 characters that begin with A.
func (m *keyMatcher) telegram(colon int) {
	if colon < 7 || colon+35 > len(m.text) || m.text[colon+1] != 'A' {
		return
	}
	from := m.back(colon, 11, isDigit)
	stop := m.run(colon+1, isBase64URL)
	id, key := colon-from, stop-colon-1
	if id < 7 || id > 10 || key < 34 || key > 35 || from > 0 && isWord(m.text[from-1]) && !strings.HasSuffix(m.text[:from], "/bot") {
		return
	}
	m.add(ruleMessaging, from, stop)
}
