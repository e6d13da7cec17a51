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
// has no user; if that is because something in it can't be a name, bad says
// what. secret is the install secret.
func (r *Resolver) Scope(secret []byte, h http.Header, req *dialect.Request, p *Profile) (s storage.Scope, ok bool, bad Unusable) {
	if r.forwarded != nil && slices.ContainsFunc(forwardedHeaders[:], func(name string) bool { return h[name] != nil }) {
		r = r.forwarded
	}
	s.Tenant = r.tenant
	if r.byKey {
		key := credential(h)
		if !r.loopback && dummyKey(key, r.dummies) {
			return s, false, bad
		}
		s.Tenant = r.keyTenant(secret, key)
	}
	if s.User, bad = r.user(h, req, p); s.User == "" {
		return s, false, bad
	}
	for _, part := range [...]struct {
		name string
		dst  *string
	}{{HeaderApp, &s.App}, {HeaderProject, &s.Project}} {
		if *part.dst, bad = headerName(h, []string{part.name}); bad != (Unusable{}) {
			return s, false, bad
		}
		if *part.dst == "" {
			*part.dst = DefaultPart
		}
	}
	return s, true, bad
}

// user returns the user, "" if the request has none.
func (r *Resolver) user(h http.Header, req *dialect.Request, p *Profile) (user string, bad Unusable) {
	if user, bad = headerName(h, r.userHeaders); user != "" || bad != (Unusable{}) {
		return user, bad
	}
	installation := p.installation.first(h, req)
	for _, v := range [...]string{req.User, req.MetadataUser} {
		ids := partsOf(v)
		if v == req.MetadataUser && len(p.user) > 0 {
			ids = parts{user: p.user.first(h, req), several: true}
		}
		if ids.several && r.tenant == localTenant {
			continue // on one person's machine all clients share one memory, so an account that one of them sends does not count
		}
		if ids.composite {
			return "", Unusable{"body", whyComposite}
		}
		user, why := nameOf(ids.user)
		if user != "" || why != "" {
			return user, unusable("body", why)
		}
		if installation == "" {
			installation = ids.installation
		}
	}
	installed, why := nameOf(installation)
	switch {
	case r.keyHolder:
		return KeyHolderUser, bad
	case !r.installations || installed == "":
		return "", unusable("body", why)
	}
	return bounded(installationPrefix, installation), bad
}

// unusable returns an Unusable with a reason, or none.
func unusable(source, why string) Unusable {
	if why == "" {
		return Unusable{}
	}
	return Unusable{source, why}
}

// parts are the ids in one value of a body.
type parts struct {
	user, installation string
	several            bool // there are others
	composite          bool // one of them is a session's, and which is the user's is unknown
}

// partsOf reads a value by its shape, whichever client sends it: some put the
// ids of a user, an account, a device and a session into one.
func partsOf(v string) parts {
	if ids, ok := joinedIDs(v); ok {
		return parts{user: ids["account_uuid"], installation: ids["device_id"], several: true}
	}
	if strings.HasPrefix(strings.TrimSpace(v), "{") && !placeholder(v) {
		out := parts{installation: dialect.Member(v, "device_id"), several: true}
		for _, name := range [...]string{"user_id", "account_uuid", "account_id"} {
			if out.user == "" {
				out.user = dialect.Member(v, name)
			}
		}
		return out
	}
	if strings.ContainsAny(v, "_:=") && sessionPart.MatchString(v) {
		return parts{several: true, composite: true}
	}
	return parts{user: v}
}

// Conversation returns the id of the conversation that a request names in a way
// that any client may use, or "". See also Profile.Conversation.
func (r *Resolver) Conversation(h http.Header, req *dialect.Request) string {
	// What can't be a name is no id: a new conversation is better than a wrong
	// one.
	if v, _ := headerName(h, r.conversationHeaders); v != "" {
		return v
	}
	v, _ := nameOf(req.Conversation)
	return v
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

// headerName returns the name in the first of the headers that has a value. If
// that header has several different values, it has none: a proxy may have
// appended its own to a forged one, and guessing would pick somebody's memory.
func headerName(h http.Header, headers []string) (name string, bad Unusable) {
	for _, header := range headers {
		vs := h[header]
		for i, v := range vs {
			if i > 0 && v != vs[0] {
				return "", Unusable{header, whyRepeated}
			}
		}
		if len(vs) == 0 {
			continue
		}
		if name, why := nameOf(vs[0]); name != "" || why != "" {
			return name, unusable(header, why)
		}
	}
	return "", bad
}
