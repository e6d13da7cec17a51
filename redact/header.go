package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// authorizationHeader finds the credentials of a scheme that has no rule of its own (ApiKey, SSWS, Token token=...), or
// of none, in an Authorization header, as it is sent or as code and settings write it.
func (s *scanner) authorizationHeader(_, end int) {
	t := s.text
	i := s.runTo(end, 12, func(c byte) bool { return strings.IndexByte("\"'`\\]):,=> ", c) >= 0 })
	if i == end || strings.IndexByte("\"'`", at(t, i)) >= 0 && i < len(t) {
		return
	}
	scheme := s.runTo(i, 24, func(c byte) bool { return isWord(c) || c == '-' })
	if strings.EqualFold(t[i:scheme], "basic") {
		return // has its own rule, which looks into it
	}
	if at(t, scheme) == ' ' {
		i = scheme + 1
		if parameter := s.runTo(i, 16, isWord); at(t, parameter) == '=' && parameter > i {
			i = s.runTo(parameter+1, 1, func(c byte) bool { return c == '"' })
		}
	}
	stop := s.runTo(i, maxAssigned, func(c byte) bool { return isBase64(c) || strings.IndexByte("-_.~", c) >= 0 })
	if value := strings.TrimRight(t[i:stop], "."); len(value) >= 16 && randomValue(value) {
		s.add(ruleAuthorization, i, i+len(value))
	}
}

// maxCookies is how much of a Cookie header is looked at, in bytes.
const maxCookies = 4 << 10

// cookies finds the random values of a Cookie or Set-Cookie header, as it is sent or in code: what they are for their
// names seldom say, and one of them is the session.
func (s *scanner) cookies(_, end int) {
	t := s.text
	if end < s.cookiesTo {
		return
	}
	i := s.runTo(end, 8, func(c byte) bool { return strings.IndexByte("\"'`\\:,= ", c) >= 0 })
	if i == end {
		return
	}
	for limit := min(len(t), i+maxCookies); i < limit; {
		name := s.runTo(i, 64, func(c byte) bool { return isWord(c) || strings.IndexByte("-.$", c) >= 0 })
		if name == i || at(t, name) != '=' {
			break
		}
		stop := s.runTo(name+1, maxAssigned, func(c byte) bool { return c > ' ' && strings.IndexByte(";\"'`\\,", c) < 0 })
		value := t[name+1 : stop]
		if len(value) >= 16 && randomValue(value) && !tracker(t[i:name]) {
			s.add(ruleAuthorization, name+1, stop)
		}
		i = s.runTo(stop, 3, func(c byte) bool { return c == ';' || c == ' ' })
		if i == stop {
			break
		}
	}
	s.cookiesTo = i
}

// sessionCookie finds the value of a cookie that servers keep sessions by, where it stands alone.
func (s *scanner) sessionCookie(start, end int) {
	t := s.text
	if start > 0 && isAlnum(t[start-1]) {
		return
	}
	i := s.runTo(end, 5, func(c byte) bool { return strings.IndexByte("\"'`:= ", c) >= 0 })
	if !strings.ContainsAny(t[end:i], ":=") {
		return
	}
	stop := s.runTo(i, maxAssigned, func(c byte) bool { return c > ' ' && strings.IndexByte(";\"'`\\,<>()[]{}&", c) < 0 })
	if value := strings.TrimRight(t[i:stop], ".:?!"); len(value) >= 16 && mixed(value) && randomValue(value) {
		s.add(ruleAuthorization, i, i+len(value))
	}
}

// sessionCookies are the names that the commonest servers and frameworks give them.
var sessionCookies = []string{"phpsessid", "connect.sid", "jsessionid", "asp.net_sessionid", "aspsessionid", "laravel_session", "ci_session", "_session_id", "sessionid"}

// tracker reports cookies that count visitors, which open nothing.
func tracker(name string) bool {
	return strings.HasPrefix(name, "_ga") || strings.HasPrefix(name, "_g") && len(name) <= 5 || strings.HasPrefix(name, "_fb") || strings.HasPrefix(name, "__utm")
}

// encodedPair finds base64 of user:password where a setting named auth holds it: Docker's config.json, .npmrc.
func (s *scanner) encodedPair(_, end int) {
	i := s.runTo(end, 6, func(c byte) bool { return strings.IndexByte("\"'\\:= ", c) >= 0 })
	stop := s.runTo(i, maxAssigned, isBase64)
	plain, err := base64.StdEncoding.DecodeString(s.text[i:stop])
	if i > end && err == nil && stop-i >= 8 && bytes.IndexByte(plain, ':') > 0 && printable(plain) {
		s.add(ruleAuthorization, i, stop)
	}
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// parameters of a URL that say nothing elsewhere; token, secret, password and the like are found by their names.
var parameters = []string{"key", "code", "auth", "sig", "signature", "sign", "session", "sid", "sessionid", "ticket", "hmac", "jwt"}

// unescaped undoes what URLs do to base64.
var unescaped = strings.NewReplacer("%2F", "/", "%2f", "/", "%2B", "+", "%2b", "+", "%3D", "=", "%3d", "=")

// parameter finds the random value of one of them. In a URL that is part of another the signs are encoded: %26key%3D.
func (s *scanner) parameter(start, end int) {
	t := s.text
	if name := s.back(start, 16, func(c byte) bool { return isLetter(c) || c == '-' }); start-name > 1 && t[start-1] == '-' {
		start = name // X-Amz-Signature
	}
	if start == 0 || strings.IndexByte("?&#", t[start-1]) < 0 && !oneOf(t[max(0, start-3):start], []string{"%3F", "%26"}) {
		return
	}
	stop := s.runTo(end, maxAssigned, func(c byte) bool { return isBase64URL(c) || strings.IndexByte("%.~+/=!*", c) >= 0 })
	if i := strings.Index(t[end:stop], "%26"); i >= 0 {
		stop = end + i
	}
	value := strings.TrimRight(t[end:stop], ".")
	if len(value) < 16 {
		return
	}
	plain := unescaped.Replace(value)
	if mixed(plain) && randomValue(plain) && !spoken(plain) {
		s.add(ruleAssignment, end, end+len(value))
	}
}

// linkedSecret finds the random end of a link that resets, confirms or invites, and so lets in whoever has it.
func (s *scanner) linkedSecret(_, end int) {
	stop := s.runTo(end, maxAssigned, func(c byte) bool { return isBase64URL(c) || c == '.' })
	if value := strings.TrimRight(s.text[end:stop], "."); len(value) >= 20 && mixed(value) && randomValue(value) && !spoken(value) {
		s.add(ruleAssignment, end, end+len(value))
	}
}
