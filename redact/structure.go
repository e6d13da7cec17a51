package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// Secrets that are told by their structure rather than by a prefix.

// maxPEM is how far the end line of a key is looked for, in bytes.
const maxPEM = 16 << 10

// pem finds a private key block. Without its end line the key reaches as far as text looks like base64.
func (s *scanner) pem(start, end int) {
	const dashes = "-----"
	label := strings.Index(s.text[end:min(len(s.text), end+64)], dashes)
	if label < 0 || !strings.Contains(s.text[end:end+label], "PRIVATE KEY") {
		return
	}
	body := end + label + len(dashes)
	stop := body
	if close := s.endOfPEM(body) - body; close >= 0 {
		stop = body + close
		if line := strings.Index(s.text[stop+len(dashes):min(len(s.text), stop+80)], dashes); line >= 0 {
			stop += len(dashes) + line + len(dashes)
		}
		if close < 32 {
			return // a template
		}
	} else {
		for stop < len(s.text) && inPEM(s.text[stop]) {
			if s.text[stop] == '\n' { // the head of an encrypted key
				for _, head := range [...]string{"Proc-Type:", "DEK-Info:"} {
					if strings.HasPrefix(s.text[stop+1:], head) {
						stop += len(head)
						for stop+1 < len(s.text) && s.text[stop+1] != '\n' {
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
	s.add(rulePrivateKey, start, stop)
}

// inPEM says what stands between the lines of a key, also where they are numbered.
func inPEM(c byte) bool { return isBase64(c) || strings.IndexByte(" \t\r\n\\|", c) >= 0 }

// pemTail finds the end of a private key whose beginning is elsewhere, as in the message before.
func (s *scanner) pemTail(start, end int) {
	const dashes = "-----"
	label := strings.Index(s.text[end:min(len(s.text), end+64)], dashes)
	if label < 0 || !strings.Contains(s.text[end:end+label], "PRIVATE KEY") {
		return
	}
	from := s.back(start, maxPEM, func(c byte) bool { return isBase64(c) || c == '\n' || c == '\r' || c == '\\' })
	if start-from >= 32 {
		s.add(rulePrivateKey, from, end+label+len(dashes))
	}
}

// endOfPEM returns where the next end line stands within maxPEM bytes of i, else -1. Calls come in the order of the text,
// and nothing is read twice.
func (s *scanner) endOfPEM(i int) int {
	const line = "-----END "
	if i > s.pemEnd {
		from := max(i, s.pemTo-len(line)+1)
		limit := min(len(s.text), i+maxPEM)
		if from > limit {
			return -1
		}
		at := strings.Index(s.text[from:limit], line)
		if s.pemTo = limit; at < 0 {
			return -1
		}
		s.pemEnd = from + at
		s.pemTo = s.pemEnd
	}
	if s.pemEnd+len(line) > i+maxPEM {
		return -1
	}
	return s.pemEnd
}

// jwt finds header.payload[.signature] where the header really is base64 of a JSON object.
func (s *scanner) jwt(start, end int) {
	if start > 0 && isBase64URL(s.text[start-1]) {
		return // so that no run is read twice
	}
	dot := s.run(end, isBase64URL)
	if dot-start < 12 || dot+3 >= len(s.text) || s.text[dot] != '.' || s.text[dot+1:dot+3] != "ey" {
		return
	}
	header, err := base64.RawURLEncoding.DecodeString(s.text[start:dot])
	if err != nil || header[0] != '{' || header[len(header)-1] != '}' {
		return
	}
	stop := s.run(dot+1, isBase64URL)
	if stop < len(s.text) && s.text[stop] == '.' {
		if signature := s.run(stop+1, isBase64URL); signature > stop+1 {
			stop = signature
		}
	}
	if stop-dot > 12 {
		s.add(ruleJWT, start, stop)
	}
}

// wrappedJWT finds a JWT that was encoded in base64 once more ("ZXlK" is "eyJ").
func (s *scanner) wrappedJWT(start, end int) {
	if s.text[start:end] != "ZXlK" || start > 0 && isBase64(s.text[start-1]) {
		return
	}
	stop := s.run(end, isBase64)
	inner, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s.text[start:stop], "="))
	if err == nil && stop-start >= 60 && bytes.Contains(inner, []byte(".ey")) {
		s.add(ruleJWT, start, stop)
	}
}

// urlCredentials finds user:password, or a bare token, before the host of a URL; host and path stay.
func (s *scanner) urlCredentials(start, end int) {
	if start == 0 || !isAlnum(s.text[start-1]) {
		return
	}
	stop, at := end, -1
	for ; stop < len(s.text) && stop-end < 512; stop++ {
		c := s.text[stop]
		if c <= ' ' || strings.IndexByte("/?#\"'`<>\\", c) >= 0 {
			break
		}
		if c == '@' {
			at = stop
		}
	}
	if at < 0 {
		return
	}
	user, password, ok := strings.Cut(s.text[end:at], ":")
	if !ok {
		if len(user) >= 20 && entropy(user) >= 3 && strings.ContainsAny(user, "0123456789") {
			s.add(ruleCredentialURL, end, at)
		}
		return
	}
	if password == "" || password == user || isTemplate(password) || user != "" && strings.IndexByte("$<{[", user[0]) >= 0 {
		return // nothing secret: postgres:postgres, user:${PASSWORD}
	}
	if len(password) <= 8 && onlyLowers(password) && loopbackHost(s.text[at+1:min(len(s.text), at+24)]) {
		return // a default of development, of use to nobody elsewhere
	}
	s.add(ruleCredentialURL, end, at)
}

func onlyLowers(s string) bool { return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }

// loopbackHost reports that text begins with a name of the machine itself.
func loopbackHost(text string) bool {
	for _, host := range [...]string{"localhost", "127.0.0.1", "[::1]"} {
		if after, ok := strings.CutPrefix(text, host); ok && (after == "" || !isWord(after[0]) && after[0] != '.' && after[0] != '-') {
			return true
		}
	}
	return false
}

// authorization finds what follows Bearer, Basic or "Authorization: Token".
func (s *scanner) authorization(start, end int) {
	if start > 0 && isWord(s.text[start-1]) {
		return
	}
	stop := s.run(end, func(c byte) bool { return isBase64(c) || c == '-' || c == '_' || c == '.' || c == '~' })
	value := strings.TrimRight(s.text[end:stop], ".")
	if lower(s.text[start]) == 'b' && lower(s.text[start+1]) == 'a' { // Basic: base64 of user:password
		plain, err := base64.StdEncoding.DecodeString(value)
		if err != nil || bytes.IndexByte(plain, ':') < 0 || len(value) < 8 {
			return
		}
	} else if len(value) < 16 || !randomValue(value) {
		return
	}
	s.add(ruleAuthorization, end, end+len(value))
}

// azureSecret finds an Azure AD client secret: 3 characters, a digit, Q~, 31 to 34 more.
func (s *scanner) azureSecret(start, end int) {
	if s.text[start:end] != "Q~" || start < 4 || !isDigit(s.text[start-1]) {
		return
	}
	word := func(c byte) bool { return isWord(c) || c == '~' || c == '.' || c == '-' }
	from, stop := start-4, s.runTo(end, 35, word)
	if !word(s.text[from]) || !word(s.text[from+1]) || !word(s.text[from+2]) || from > 0 && isWord(s.text[from-1]) {
		return
	}
	if n := stop - end; n >= 31 && n <= 34 && distinct(s.text[end:stop]) >= 12 {
		s.add(ruleAzure, from, stop)
	}
}

// mailchimp finds 32 hex digits before -us and a data centre number.
func (s *scanner) mailchimp(start, end int) {
	stop := s.run(end, isDigit)
	from := s.back(start, 33, func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' })
	if stop > end && stop-end <= 2 && start-from == 32 && (from == 0 || !isWord(s.text[from-1])) {
		s.add(ruleMessaging, from, stop)
	}
}

// terraform finds an API token around its middle: 14 characters, .atlasv1., 60 to 70.
func (s *scanner) terraform(start, end int) {
	stop := s.run(end, func(c byte) bool { return isBase64URL(c) || c == '=' })
	from := s.back(start, 15, isAlnum)
	if start-from == 14 && stop-end >= 60 && stop-end <= 70 && distinct(s.text[end:stop]) >= 12 {
		s.add(ruleVendor, from, stop)
	}
}

// maxmind finds a licence key before its end: 6 characters, an underscore, 29, _mmk.
func (s *scanner) maxmind(start, end int) {
	from := s.back(start, 37, isWord)
	if key := s.text[from:start]; len(key) == 36 && strings.IndexByte(key, '_') == 6 && distinct(key) >= 12 && (end == len(s.text) || !isWord(s.text[end])) {
		s.add(ruleVendor, from, end)
	}
}

// airtable finds a personal access token around its dot: pat, 14 characters, 64 hex digits.
func (s *scanner) airtable(dot int) {
	if dot < 17 || s.text[dot-17:dot-14] != "pat" || dot > 17 && isWord(s.text[dot-18]) {
		return
	}
	stop := s.run(dot+1, isHex)
	if stop-dot-1 == 64 && s.back(dot, 17, isAlnum) == dot-17 && distinct(s.text[dot+1:stop]) >= 8 {
		s.add(ruleVendor, dot-17, stop)
	}
}

// facebook finds an app token: the 15 or 16 digits of an app's id that begin at i, a bar, 27 to 40 characters.
func (s *scanner) facebook(i, stop int) int {
	if n := stop - i; n != 15 && n != 16 || at(s.text, stop) != '|' {
		return i
	}
	end := s.run(stop+1, isBase64URL)
	if n := end - stop - 1; n < 27 || n > 40 || distinct(s.text[stop+1:end]) < 8 {
		return i
	}
	s.add(ruleVendor, i, end)
	return end
}

// awsAccount finds the twelve digits assigned to an AWS account id.
func (s *scanner) awsAccount(_, end int) {
	from := s.run(end, func(c byte) bool { return strings.IndexByte("\"' :=>", c) >= 0 })
	stop := s.run(from, func(c byte) bool { return isDigit(c) || c == '-' })
	if digits := strings.ReplaceAll(s.text[from:stop], "-", ""); from > end && len(digits) == 12 {
		s.add(ruleAWS, from, stop)
	}
}

// discord finds a bot token around its first dot: 24-26 characters, 6, 27-38.
func (s *scanner) discord(dot int) {
	if dot < 24 || dot+34 >= len(s.text) || s.text[dot+7] != '.' {
		return
	}
	from := s.back(dot, 27, isBase64URL)
	stop := s.run(dot+8, isBase64URL)
	if n := dot - from; n < 24 || n > 26 || stop-dot-8 < 27 || s.run(dot+1, isBase64URL) != dot+7 {
		return
	}
	if c := s.text[from]; c < 'A' || c > 'O' || distinct(s.text[from:stop]) < 16 {
		return
	}
	s.add(ruleMessaging, from, stop)
}

// telegram finds a bot token around its colon: 7-10 digits, 35 characters that begin with A.
func (s *scanner) telegram(colon int) {
	if colon < 7 || colon+35 > len(s.text) || s.text[colon+1] != 'A' {
		return
	}
	from := s.back(colon, 11, isDigit)
	stop := s.run(colon+1, isBase64URL)
	n, m := colon-from, stop-colon-1
	if n < 7 || n > 10 || m < 34 || m > 35 || from > 0 && isWord(s.text[from-1]) && !strings.HasSuffix(s.text[:from], "/bot") {
		return
	}
	s.add(ruleMessaging, from, stop)
}

// at is the byte at i, 0 outside the text.
func at(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return 0
	}
	return text[i]
}

// back returns the start of the run of bytes before i that satisfy in, at most limit of them.
func (s *scanner) back(i, limit int, in func(byte) bool) int {
	from := i
	for from > 0 && i-from < limit && in(s.text[from-1]) {
		from--
	}
	return from
}

// runTo is run for at most limit bytes.
func (s *scanner) runTo(i, limit int, in func(byte) bool) int {
	stop := i
	for stop < len(s.text) && stop-i < limit && in(s.text[stop]) {
		stop++
	}
	return stop
}

// run returns the end of the longest run of bytes from i on that satisfy in.
func (s *scanner) run(i int, in func(byte) bool) int {
	for i < len(s.text) && in(s.text[i]) {
		i++
	}
	return i
}

func isBase64(c byte) bool    { return isAlnum(c) || c == '+' || c == '/' || c == '=' }
func isBase64URL(c byte) bool { return isWord(c) || c == '-' }
