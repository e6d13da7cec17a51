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

// minWebSecret is the length of the shortest random value that is a credential,
// in bytes.
const minWebSecret = 16

// urlCredentials finds user:password, or a bare token, before the host of a
// URL. Host and path stay.
func (m *webMatcher) urlCredentials(start, end int) {
	if !isAlnum(byteAt(m.text, start-1)) {
		return
	}
	authority := m.text[end:m.runTo(end, 512, func(c byte) bool { return c > ' ' && strings.IndexByte("/?#\"'`<>\\", c) < 0 })]
	n := strings.LastIndexByte(authority, '@')
	if n < 0 {
		return
	}
	at := end + n
	user, password, ok := strings.Cut(m.text[end:at], ":")
	if !ok {
		if len(user) >= 20 && entropy(user) >= 3 && strings.ContainsAny(user, "0123456789") {
			m.add(ruleCredentialURL, end, at)
		}
		return
	}
	if password == "" || password == user || isPlaceholderValue(password) || user != "" && strings.IndexByte("$<{[", user[0]) >= 0 {
		return // not secret: postgres:postgres, user:${PASSWORD}
	}
	if len(password) <= 8 && strings.Trim(password, "abcdefghijklmnopqrstuvwxyz") == "" && isLoopbackHost(m.after(at+1, 23)) {
		return // a development default, useless elsewhere
	}
	m.add(ruleCredentialURL, end, at)
}

// isLoopbackHost reports whether text starts with a name of the machine itself.
func isLoopbackHost(text string) bool {
	for _, host := range [...]string{"localhost", "127.0.0.1", "[::1]"} {
		if after, ok := strings.CutPrefix(text, host); ok && (after == "" || !isWord(after[0]) && after[0] != '.' && after[0] != '-') {
			return true
		}
	}
	return false
}

// authorization finds the credential after Bearer, Basic or "Authorization:
// Token".
func (m *webMatcher) authorization(start, end int) {
	if isWord(byteAt(m.text, start-1)) {
		return
	}
	value := m.credential(end, len(m.text))
	if strings.EqualFold(m.text[start:start+2], "ba") {
		if len(value) < 8 || !isBasicAuth(value, false) {
			return
		}
	} else if len(value) < minWebSecret || !randomValue(value) {
		return
	}
	m.add(ruleAuthorization, end, end+len(value))
}

// credential returns the token at i, at most limit bytes, without the end of a
// sentence.
func (m *webMatcher) credential(i, limit int) string {
	stop := m.runTo(i, limit, func(c byte) bool { return isBase64(c) || strings.IndexByte("-_.~", c) >= 0 })
	return strings.TrimRight(m.text[i:stop], ".")
}

// isBasicAuth reports whether value is base64 of user:password, with printable
// also without control characters.
func isBasicAuth(value string, printable bool) bool {
	plain, err := base64.StdEncoding.DecodeString(value)
	return err == nil && bytes.IndexByte(plain, ':') >= 0 &&
		(!printable || plain[0] != ':' && bytes.IndexFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0)
}

// authorizationHeader finds the credential of any other scheme (ApiKey, SSWS,
// Token token=...), or of none, in an Authorization header, as it is sent or as
// code and settings write it.
func (m *webMatcher) authorizationHeader(_, end int) {
	t := m.text
	i := m.runTo(end, 12, in("\"'`\\]):,=> "))
	if c := byteAt(t, i); i == end || c == '"' || c == '\'' || c == '`' {
		return
	}
	scheme := m.runTo(i, 24, isBase64URL)
	if strings.EqualFold(t[i:scheme], "basic") {
		return // has its own rule, which decodes it
	}
	if byteAt(t, scheme) == ' ' {
		i = scheme + 1
		if parameter := m.runTo(i, 16, isWord); byteAt(t, parameter) == '=' && parameter > i {
			i = m.runTo(parameter+1, 1, in(`"`))
		}
	}
	if value := m.credential(i, maxAssigned); len(value) >= minWebSecret && randomValue(value) {
		m.add(ruleAuthorization, i, i+len(value))
	}
}

// maxCookies is how much of a Cookie header is examined, in bytes.
const maxCookies = 4 << 10

// cookies finds the random values of a Cookie or Set-Cookie header, as it is
// sent or in code. Their names seldom show which one is the session.
func (m *webMatcher) cookies(_, end int) {
	if end < m.cookiesEnd {
		return
	}
	i := m.runTo(end, 8, in("\"'`\\:,= "))
	if i == end {
		return
	}
	for limit := min(len(m.text), i+maxCookies); i < limit; {
		name := m.runTo(i, 64, wordOr("-.$"))
		if name == i || byteAt(m.text, name) != '=' {
			break
		}
		stop := m.runTo(name+1, maxAssigned, func(c byte) bool { return c > ' ' && strings.IndexByte(";\"'`\\,", c) < 0 })
		if value := m.text[name+1 : stop]; len(value) >= minWebSecret && randomValue(value) && !isTracker(m.text[i:name]) {
			m.add(ruleAuthorization, name+1, stop)
		}
		if i = m.runTo(stop, 3, in("; ")); i == stop {
			break
		}
	}
	m.cookiesEnd = i
}

// isTracker reports whether a cookie only counts visitors.
func isTracker(name string) bool {
	return strings.HasPrefix(name, "_ga") || strings.HasPrefix(name, "_g") && len(name) <= 5 || strings.HasPrefix(name, "_fb") || strings.HasPrefix(name, "__utm")
}

// sessionCookies are the names that common servers and frameworks use.
var sessionCookies = []string{"phpsessid", "connect.sid", "jsessionid", "asp.net_sessionid", "aspsessionid", "laravel_session", "ci_session", "_session_id", "sessionid"}

// sessionCookie finds the value of one of sessionCookies outside of a header.
func (m *webMatcher) sessionCookie(start, end int) {
	t := m.text
	i := m.runTo(end, 5, in("\"'`:= "))
	if isAlnum(byteAt(t, start-1)) || !strings.ContainsAny(t[end:i], ":=") {
		return
	}
	stop := m.runTo(i, maxAssigned, func(c byte) bool { return c > ' ' && strings.IndexByte(";\"'`\\,<>()[]{}&", c) < 0 })
	if value := strings.TrimRight(t[i:stop], ".:?!"); len(value) >= minWebSecret && hasDigitAndLetter(value) && randomValue(value) {
		m.add(ruleAuthorization, i, i+len(value))
	}
}

// encodedPair finds base64 of user:password in a setting named auth: Docker's
// config.json, .npmrc.
func (m *webMatcher) encodedPair(_, end int) {
	i := m.runTo(end, 6, in("\"'\\:= "))
	stop := m.runTo(i, maxAssigned, isBase64)
	if i > end && stop-i >= 8 && isBasicAuth(m.text[i:stop], true) {
		m.add(ruleAuthorization, i, stop)
	}
}

// parameters are URL parameters whose names say nothing elsewhere. Token,
// secret, password and the like are found by their names.
var parameters = []string{"key", "code", "auth", "sig", "signature", "sign", "session", "sid", "sessionid", "ticket", "hmac", "jwt"}

// urlUnescape undoes the URL escapes of base64.
var urlUnescape = strings.NewReplacer("%2F", "/", "%2f", "/", "%2B", "+", "%2b", "+", "%3D", "=", "%3d", "=")

// parameter finds the random value of one of parameters.
func (m *webMatcher) parameter(start, end int) {
	t := m.text
	if name := m.back(start, 16, func(c byte) bool { return isLetter(c) || c == '-' }); start-name > 1 && t[start-1] == '-' {
		start = name // X-Amz-Signature
	}
	if c := byteAt(t, start-1); c != '?' && c != '&' && c != '#' {
		return
	}
	stop := m.runTo(end, maxAssigned, wordOr("-%.~+/=!*"))
	m.addURLSecret(end, strings.TrimRight(t[end:stop], "."), minWebSecret)
}

// linkedSecret finds the random end of a link that resets, confirms or invites,
// and gives access to anyone who has it.
func (m *webMatcher) linkedSecret(_, end int) {
	stop := m.runTo(end, maxAssigned, wordOr("-."))
	m.addURLSecret(end, strings.TrimRight(m.text[end:stop], "."), 20)
}

// addURLSecret adds the value at i if it looks random and is not too short.
func (m *webMatcher) addURLSecret(i int, value string, minimum int) {
	plain := urlUnescape.Replace(value)
	if len(value) >= minimum && hasDigitAndLetter(plain) && randomValue(plain) && !isPronounceable(plain) {
		m.add(ruleAssignment, i, i+len(value))
	}
}
