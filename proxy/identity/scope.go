package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// forwardedHeaders are what a reverse proxy adds to requests that it forwards.
var forwardedHeaders = [...]string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"}

// Scope returns whose memory a request is about. It is not ok if the request
// has no user. secret is the install secret.
func (r *Resolver) Scope(secret []byte, h http.Header, req *dialect.Request, p *Profile) (s storage.Scope, ok bool) {
	if r.forwarded != nil && slices.ContainsFunc(forwardedHeaders[:], func(name string) bool { return h[name] != nil }) {
		r = r.forwarded
	}
	s.Tenant = r.tenant
	if r.byKey {
		key := credential(h)
		if _, dummy := r.dummies[key]; dummy && !r.loopback {
			return s, false
		}
		s.Tenant = r.keyTenant(secret, key)
	}
	user, ok := firstHeader(h, r.userHeaders)
	if !ok {
		return s, false
	}
	for _, v := range [...]string{user, req.User, r.metadataUser(h, req, p)} {
		if v = cleanID(v); v != "" {
			s.User = v
			break
		}
	}
	if s.User == "" {
		installation := cleanID(p.installation.first(h, req))
		switch {
		case r.keyHolder:
			s.User = KeyHolderUser
		case installation != "" && r.installations:
			s.User = "installation:" + installation
		default:
			return s, false
		}
	}
	for _, part := range [...]struct {
		name string
		dst  *string
	}{{HeaderApp, &s.App}, {HeaderProject, &s.Project}} {
		v, ok := firstHeader(h, []string{part.name})
		if !ok {
			return s, false
		}
		if *part.dst = cleanID(v); *part.dst == "" {
			*part.dst = DefaultPart
		}
	}
	return s, true
}

// metadataUser returns the user that the body's metadata names. Some clients
// put an object of several ids there, and only for known clients is it known
// which of them is the user's. On one person's machine all clients share one
// memory, so an account that only one of them sends does not count there.
func (r *Resolver) metadataUser(h http.Header, req *dialect.Request, p *Profile) string {
	switch {
	case len(p.user) > 0 && r.tenant == localTenant:
		return ""
	case len(p.user) > 0:
		return p.user.first(h, req)
	case strings.HasPrefix(strings.TrimSpace(req.MetadataUser), "{"):
		return ""
	}
	return req.MetadataUser
}

// Conversation returns the id of the conversation that a request names in a way
// that any client may use, or "". See also Profile.Conversation.
func (r *Resolver) Conversation(h http.Header, req *dialect.Request) string {
	// Two different values are no id: a new conversation is better than a wrong
	// one.
	if v, ok := firstHeader(h, r.conversationHeaders); ok {
		if v = cleanID(v); v != "" {
			return v
		}
	}
	return cleanID(req.Conversation)
}

// keyTenant returns the tenant of an upstream credential.
func (r *Resolver) keyTenant(secret []byte, key string) string {
	hash := KeyHash(secret, key)
	if name, ok := r.tenants[hash]; ok {
		return "name:" + name
	}
	return "key:" + hash
}

// KeyHash returns HMAC-SHA256(install secret, credential) in hexadecimal, which
// identifies a credential in identity.tenants.
func KeyHash(secret []byte, key string) string {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("remora tenant\x00"))
	m.Write([]byte(key))
	return hex.EncodeToString(m.Sum(nil))
}

// credential returns what the client authenticates to the upstream with:
// Authorization (a bearer token without the scheme), x-api-key, x-goog-api-key
// or api-key.
func credential(h http.Header) string {
	if v := h.Get("Authorization"); v != "" {
		return AuthorizedKey(v)
	}
	if v := h.Get("X-Api-Key"); v != "" {
		return v
	}
	if v := h.Get("X-Goog-Api-Key"); v != "" {
		return v
	}
	return h.Get("Api-Key")
}

// AuthorizedKey returns the credential in the value of an Authorization header.
// A value without a scheme is the credential.
func AuthorizedKey(v string) string {
	if scheme, token, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	if strings.EqualFold(v, "Bearer") { // an empty key, as some SDKs send it
		return ""
	}
	return v
}

// firstHeader returns the first of the headers that has a value. ok is false if
// that header has several different values: a proxy may have appended its own
// to a forged one, and guessing would pick somebody's memory.
func firstHeader(h http.Header, names []string) (value string, ok bool) {
	for _, n := range names {
		vs := h[n]
		for i, v := range vs {
			if i > 0 && v != vs[0] {
				return "", false
			}
		}
		if len(vs) > 0 && vs[0] != "" {
			return vs[0], true
		}
	}
	return "", true
}
