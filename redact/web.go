package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// webMatcher finds credentials in URLs, headers and cookies.
type webMatcher struct {
	*document
	cookiesEnd int // end of the last Cookie header that was examined
}

// urlCredentials finds user:password, or a bare token, before the host of a URL; host and path stay.
func (m *webMatcher) urlCredentials(start, end int) {
	if start == 0 || !isAlnum(m.text[start-1]) {
		return
	}
	stop, at := end, -1
	for ; stop < len(m.text) && stop-end < 512; stop++ {
		c := m.text[stop]
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
	user, password, ok := strings.Cut(m.text[end:at], ":")
	if !ok {
		if len(user) >= 20 && entropy(user) >= 3 && strings.ContainsAny(user, "0123456789") {
			m.add(ruleCredentialURL, end, at)
		}
		return
	}
	if password == "" || password == user || isPlaceholderValue(password) || user != "" && strings.IndexByte("$<{[", user[0]) >= 0 {
		return // nothing secret: postgres:postgres, user:${PASSWORD}
	}
	if len(password) <= 8 && isLowerCase(password) && loopbackHost(m.text[at+1:min(len(m.text), at+24)]) {
		return // a default of development, of use to nobody elsewhere
	}
	m.add(ruleCredentialURL, end, at)
}

func isLowerCase(s string) bool { return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }

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
func (m *webMatcher) authorization(start, end int) {
	if start > 0 && isWord(m.text[start-1]) {
		return
	}
	stop := m.run(end, func(c byte) bool { return isBase64(c) || c == '-' || c == '_' || c == '.' || c == '~' })
	value := strings.TrimRight(m.text[end:stop], ".")
	if lower(m.text[start]) == 'b' && lower(m.text[start+1]) == 'a' { // Basic: base64 of user:password
		plain, err := base64.StdEncoding.DecodeString(value)
		if err != nil || bytes.IndexByte(plain, ':') < 0 || len(value) < 8 {
			return
		}
	} else if len(value) < 16 || !randomValue(value) {
		return
	}
	m.add(ruleAuthorization, end, end+len(value))
}

// authorizationHeader finds the credentials of a scheme that has no rule of its own (ApiKey, SSWS, Token token=...), or
// of none, in an Authorization header, as it is sent or as code and settings write it.
func (m *webMatcher) authorizationHeader(_, end int) {
	t := m.text
	i := m.runTo(end, 12, func(c byte) bool { return strings.IndexByte("\"'`\\]):,=> ", c) >= 0 })
	if i == end || strings.IndexByte("\"'`", byteAt(t, i)) >= 0 && i < len(t) {
		return
	}
	scheme := m.runTo(i, 24, func(c byte) bool { return isWord(c) || c == '-' })
	if strings.EqualFold(t[i:scheme], "basic") {
		return // has its own rule, which looks into it
	}
	if byteAt(t, scheme) == ' ' {
		i = scheme + 1
		if parameter := m.runTo(i, 16, isWord); byteAt(t, parameter) == '=' && parameter > i {
			i = m.runTo(parameter+1, 1, func(c byte) bool { return c == '"' })
		}
	}
	stop := m.runTo(i, maxAssigned, func(c byte) bool { return isBase64(c) || strings.IndexByte("-_.~", c) >= 0 })
	if value := strings.TrimRight(t[i:stop], "."); len(value) >= 16 && randomValue(value) {
		m.add(ruleAuthorization, i, i+len(value))
	}
}

// maxCookies is how much of a Cookie header is looked at, in bytes.
const maxCookies = 4 << 10

// cookies finds the random values of a Cookie or Set-Cookie header, as it is sent or in code: what they are for their
// names seldom say, and one of them is the session.
func (m *webMatcher) cookies(_, end int) {
	t := m.text
	if end < m.cookiesEnd {
		return
	}
	i := m.runTo(end, 8, func(c byte) bool { return strings.IndexByte("\"'`\\:,= ", c) >= 0 })
	if i == end {
		return
	}
	for limit := min(len(t), i+maxCookies); i < limit; {
		name := m.runTo(i, 64, func(c byte) bool { return isWord(c) || strings.IndexByte("-.$", c) >= 0 })
		if name == i || byteAt(t, name) != '=' {
			break
		}
		stop := m.runTo(name+1, maxAssigned, func(c byte) bool { return c > ' ' && strings.IndexByte(";\"'`\\,", c) < 0 })
		value := t[name+1 : stop]
		if len(value) >= 16 && randomValue(value) && !isTracker(t[i:name]) {
			m.add(ruleAuthorization, name+1, stop)
		}
		i = m.runTo(stop, 3, func(c byte) bool { return c == ';' || c == ' ' })
		if i == stop {
			break
		}
	}
	m.cookiesEnd = i
}

// sessionCookie finds the value of a cookie that servers keep sessions by, where it stands alone.
func (m *webMatcher) sessionCookie(start, end int) {
	t := m.text
	if start > 0 && isAlnum(t[start-1]) {
		return
	}
	i := m.runTo(end, 5, func(c byte) bool { return strings.IndexByte("\"'`:= ", c) >= 0 })
	if !strings.ContainsAny(t[end:i], ":=") {
		return
	}
	stop := m.runTo(i, maxAssigned, func(c byte) bool { return c > ' ' && strings.IndexByte(";\"'`\\,<>()[]{}&", c) < 0 })
	if value := strings.TrimRight(t[i:stop], ".:?!"); len(value) >= 16 && hasDigitAndLetter(value) && randomValue(value) {
		m.add(ruleAuthorization, i, i+len(value))
	}
}

// sessionCookies are the names that the commonest servers and frameworks give them.
var sessionCookies = []string{"phpsessid", "connect.sid", "jsessionid", "asp.net_sessionid", "aspsessionid", "laravel_session", "ci_session", "_session_id", "sessionid"}

// tracker reports cookies that count visitors, which open nothing.
func isTracker(name string) bool {
	return strings.HasPrefix(name, "_ga") || strings.HasPrefix(name, "_g") && len(name) <= 5 || strings.HasPrefix(name, "_fb") || strings.HasPrefix(name, "__utm")
}

// encodedPair finds base64 of user:password where a setting named auth holds it: Docker's config.json, .npmrc.
func (m *webMatcher) encodedPair(_, end int) {
	i := m.runTo(end, 6, func(c byte) bool { return strings.IndexByte("\"'\\:= ", c) >= 0 })
	stop := m.runTo(i, maxAssigned, isBase64)
	plain, err := base64.StdEncoding.DecodeString(m.text[i:stop])
	if i > end && err == nil && stop-i >= 8 && bytes.IndexByte(plain, ':') > 0 && isPrintable(plain) {
		m.add(ruleAuthorization, i, stop)
	}
}

// parameters of a URL that say nothing elsewhere; token, secret, password and the like are found by their names.
var parameters = []string{"key", "code", "auth", "sig", "signature", "sign", "session", "sid", "sessionid", "ticket", "hmac", "jwt"}

// unescaped undoes what URLs do to base64.
var urlUnescape = strings.NewReplacer("%2F", "/", "%2f", "/", "%2B", "+", "%2b", "+", "%3D", "=", "%3d", "=")

// parameter finds the random value of one of them. In a URL that is part of another the signs are encoded: %26key%3D.
func (m *webMatcher) parameter(start, end int) {
	t := m.text
	if name := m.back(start, 16, func(c byte) bool { return isLetter(c) || c == '-' }); start-name > 1 && t[start-1] == '-' {
		start = name // X-Amz-Signature
	}
	if start == 0 || strings.IndexByte("?&#", t[start-1]) < 0 && !isOneOf(t[max(0, start-3):start], []string{"%3F", "%26"}) {
		return
	}
	stop := m.runTo(end, maxAssigned, func(c byte) bool { return isBase64URL(c) || strings.IndexByte("%.~+/=!*", c) >= 0 })
	if i := strings.Index(t[end:stop], "%26"); i >= 0 {
		stop = end + i
	}
	value := strings.TrimRight(t[end:stop], ".")
	if len(value) < 16 {
		return
	}
	plain := urlUnescape.Replace(value)
	if hasDigitAndLetter(plain) && randomValue(plain) && !isPronounceable(plain) {
		m.add(ruleAssignment, end, end+len(value))
	}
}

// linkedSecret finds the random end of a link that resets, confirms or invites, and so lets in whoever has it.
func (m *webMatcher) linkedSecret(_, end int) {
	stop := m.runTo(end, maxAssigned, func(c byte) bool { return isBase64URL(c) || c == '.' })
	if value := strings.TrimRight(m.text[end:stop], "."); len(value) >= 20 && hasDigitAndLetter(value) && randomValue(value) && !isPronounceable(value) {
		m.add(ruleAssignment, end, end+len(value))
	}
}
