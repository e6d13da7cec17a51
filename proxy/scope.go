package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// Settings of identity that are not names.
const (
	TenantAuto = "auto" // local on a loopback listener outside containers, else key
	TenantKey  = "key"  // by the upstream credential

	AnonymousAuto      = "auto"      // keyHolder on a loopback listener outside containers, else off
	AnonymousKeyHolder = "keyHolder" // who holds the key is the user
	AnonymousOff       = "off"       // no user, no memory

	SubAgentsOn   = "on"   // like the agent that they belong to
	SubAgentsRead = "read" // memories, but nothing of theirs is stored
	SubAgentsOff  = "off"
)

// KeyHolderUser is the user of keyHolder mode. The NUL keeps it apart from every id a client can send (see cleanID).
const KeyHolderUser = "\x00key-holder"

// DefaultPart is the app or project of requests that name none.
const DefaultPart = "default"

// localTenant is whose memory it is on one person's machine, whatever key their programs use.
const localTenant = "local"

// IdentityConfig says whose memory a request is about.
type IdentityConfig struct {
	// Tenant is auto, key, or the name of the one tenant that all traffic belongs to.
	Tenant string
	// Tenants maps key hashes, as `remora tenant hash` prints them (64 hex digits), to tenant names: several keys, one memory. It counts
	// where tenants are by key.
	Tenants map[string]string
	// Anonymous is auto, keyHolder or off.
	Anonymous string
	// UserHeaders and ConversationHeaders are tried in order after X-Remora-User and X-Remora-Conversation.
	UserHeaders         []string
	ConversationHeaders []string
	// SubAgents is what sub-agents of known clients have of memory, where a request does not say it itself: on, read or off.
	SubAgents string
	// DummyKeys are credentials that say nothing about who sends them. Where tenants are by key they get no memory off
	// loopback. No credential at all counts as one.
	DummyKeys []string
	// Loopback: the listener can be reached from this machine only. Container: it runs in one.
	Loopback  bool
	Container bool
}

// DefaultIdentityConfig knows the headers that gateways, user interfaces and agents send by themselves.
func DefaultIdentityConfig() IdentityConfig {
	return IdentityConfig{
		Tenant:    TenantAuto,
		Anonymous: AnonymousAuto,
		SubAgents: SubAgentsRead,
		UserHeaders: []string{
			"X-Sm-User-Id", "X-OpenWebUI-User-Id", "Helicone-User-Id", "X-User-Id",
		},
		ConversationHeaders: []string{
			"X-Sm-Conversation-Id", "Helicone-Session-Id", "X-OpenWebUI-Chat-Id", "X-Conversation-Id",
			"X-Claude-Code-Session-Id", "X-Session-Id", "Session-Id", "Session_id",
		},
		DummyKeys: []string{
			"EMPTY", "empty", "none", "null", "dummy", "ollama", "lm-studio", "sk-local", "sk-dummy", "sk-no-key-required",
			"no-key", "not-needed", "x", "test",
		},
	}
}

// Validate reports all problems, each with its key.
func (c IdentityConfig) Validate() error {
	var errs []error
	if c.Tenant == "" || len(c.Tenant) > 128 {
		errs = append(errs, errors.New("tenant: must be auto, key or a name of 1 to 128 bytes"))
	}
	switch c.Anonymous {
	case AnonymousAuto, AnonymousKeyHolder, AnonymousOff:
	default:
		errs = append(errs, errors.New("anonymous: must be auto, keyHolder or off"))
	}
	switch c.SubAgents {
	case SubAgentsOn, SubAgentsRead, SubAgentsOff:
	default:
		errs = append(errs, errors.New("subAgents: must be on, read or off"))
	}
	for hash, name := range c.Tenants {
		if b, err := hex.DecodeString(hash); err != nil || len(b) != sha256.Size {
			errs = append(errs, errors.New("tenants: every key must be a key hash of 64 hex digits"))
			break
		}
		if name == "" || len(name) > 128 {
			errs = append(errs, errors.New("tenants: every name must have 1 to 128 bytes"))
			break
		}
	}
	for key, list := range map[string][]string{"userHeaders": c.UserHeaders, "conversationHeaders": c.ConversationHeaders} {
		for i, h := range list {
			if h == "" || strings.ContainsAny(h, " \t:\r\n") {
				errs = append(errs, fmt.Errorf("%s[%d]: must be a header name", key, i))
			}
		}
	}
	return errors.Join(errs...)
}

// identity resolves scopes. It is immutable.
type identity struct {
	byKey     bool // tenants are by credential
	tenant    string
	tenants   map[string]string
	keyHolder bool
	// installations: an id of the client's installation names the user where nothing else does. Who says that requests
	// without a user get no memory means it.
	installations bool
	loopback      bool
	dummies       map[string]struct{}
	users         []string // canonical header names
	convs         []string
	// forwarded resolves, on one person's machine, what another proxy on it passes on: that may be anybody's. nil elsewhere.
	forwarded *identity
}

func newIdentity(c IdentityConfig) *identity {
	own := c.Loopback && !c.Container // one person's machine
	id := &identity{tenants: make(map[string]string, len(c.Tenants)), loopback: c.Loopback, dummies: map[string]struct{}{"": {}}}
	for hash, name := range c.Tenants {
		id.tenants[strings.ToLower(hash)] = name
	}
	if own {
		elsewhere := c
		elsewhere.Loopback = false
		id.forwarded = newIdentity(elsewhere)
	}
	switch {
	case c.Tenant == TenantKey, c.Tenant == TenantAuto && !own:
		id.byKey = true
	case c.Tenant == TenantAuto:
		id.tenant = localTenant
	default:
		id.tenant = "name:" + c.Tenant
	}
	id.keyHolder = c.Anonymous == AnonymousKeyHolder || c.Anonymous == AnonymousAuto && own
	id.installations = c.Anonymous == AnonymousAuto
	for _, k := range c.DummyKeys {
		id.dummies[k] = struct{}{}
	}
	canonical := func(own string, foreign []string) []string {
		out := []string{own}
		for _, h := range foreign {
			out = append(out, http.CanonicalHeaderKey(h))
		}
		return out
	}
	id.users, id.convs = canonical(headerUser, c.UserHeaders), canonical(headerConversation, c.ConversationHeaders)
	return id
}

// forwardedHeaders are what a reverse proxy says of whom it passes on.
var forwardedHeaders = [...]string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"}

// scope returns whose memory this request is about; ok is false where that is nobody's.
func (id *identity) scope(secret []byte, h http.Header, req *dialect.Request, c *client) (s storage.Scope, ok bool) {
	if id.forwarded != nil && slices.ContainsFunc(forwardedHeaders[:], func(name string) bool { return h[name] != nil }) {
		id = id.forwarded
	}
	s.Tenant = id.tenant
	if id.byKey {
		key := credential(h)
		if _, dummy := id.dummies[key]; dummy && !id.loopback {
			return s, false
		}
		s.Tenant = id.keyTenant(secret, key)
	}
	user, ok := firstHeader(h, id.users)
	if !ok {
		return s, false
	}
	for _, v := range [...]string{user, req.User, id.metadataUser(h, req, c)} {
		if v = cleanID(v); v != "" {
			s.User = v
			break
		}
	}
	if s.User == "" {
		installation := cleanID(c.installation.first(h, req))
		switch {
		case id.keyHolder:
			s.User = KeyHolderUser
		case installation != "" && id.installations:
			s.User = "installation:" + installation
		default:
			return s, false
		}
	}
	for _, p := range [...]struct {
		name string
		part *string
	}{{headerApp, &s.App}, {headerProject, &s.Project}} {
		v, ok := firstHeader(h, []string{p.name})
		if !ok {
			return s, false
		}
		if *p.part = cleanID(v); *p.part == "" {
			*p.part = DefaultPart
		}
	}
	return s, true
}

// metadataUser is the user that the body's metadata names. Some clients put an object of several ids there, and which of
// them is the user's is known of known clients only. On one person's machine all clients share one memory, so there an
// account that only one of them tells of does not count.
func (id *identity) metadataUser(h http.Header, req *dialect.Request, c *client) string {
	switch {
	case len(c.user) > 0 && id.tenant == localTenant:
		return ""
	case len(c.user) > 0:
		return c.user.first(h, req)
	case strings.HasPrefix(strings.TrimSpace(req.MetadataUser), "{"):
		return ""
	}
	return req.MetadataUser
}

// conversation returns the id that the request names, or "".
func (id *identity) conversation(h http.Header, req *dialect.Request) string {
	// Two different values are no id: better a conversation of its own than a wrong one.
	if v, ok := firstHeader(h, id.convs); ok {
		if v = cleanID(v); v != "" {
			return v
		}
	}
	return cleanID(req.Conversation)
}

// keyTenant is the tenant of an upstream credential. The credential itself is never kept.
func (id *identity) keyTenant(secret []byte, key string) string {
	hash := KeyHash(secret, key)
	if name, ok := id.tenants[hash]; ok {
		return "name:" + name
	}
	return "key:" + hash
}

// KeyHash is HMAC-SHA256(install secret, credential) as hex: the name of a credential in identity.tenants.
func KeyHash(secret []byte, key string) string {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("remora tenant\x00"))
	m.Write([]byte(key))
	return hex.EncodeToString(m.Sum(nil))
}

// credential is what the client shows the upstream: Authorization (a bearer token without the word), x-api-key or api-key.
func credential(h http.Header) string {
	if v := h.Get("Authorization"); v != "" {
		return AuthorizedKey(v)
	}
	if v := h.Get("X-Api-Key"); v != "" {
		return v
	}
	return h.Get("Api-Key")
}

// AuthorizedKey is the credential in the value of an Authorization header. A key on its own is itself.
func AuthorizedKey(v string) string {
	if scheme, token, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	if strings.EqualFold(v, "Bearer") { // an empty key, as some SDKs send it
		return ""
	}
	return v
}

// firstHeader returns the first named header that has a value. ok is false where that header stands twice with
// different values: a proxy in front may have appended its own to a forged one, and guessing would pick somebody's memory.
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

// cleanID makes a client's id fit for a scope: what is too long or has control characters is known by its hash. The result
// keeps nothing but itself alive.
func cleanID(v string) string {
	if trimmed := strings.TrimSpace(v); len(trimmed) < len(v) {
		v = strings.Clone(trimmed)
	}
	if len(v) <= storage.MaxScopePart && !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return v
	}
	sum := sha256.Sum256([]byte(v))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// fromPage says that a browser page of another site may be behind the request. A page can reach loopback listeners, and
// others near the user's machine, with that machine as its address; only headers that a page can't forge tell it apart.
// Where every tenant is known by its key there is nothing to tell: a page has no key but its own. host is the host that
// the request was intercepted on its way to, "" where it came to the reverse door.
func (id *identity) fromPage(r *http.Request, host string) bool {
	if host != "" {
		if !strings.EqualFold(strings.TrimSuffix(r.Host, ":443"), host) {
			return true
		}
	} else if id.loopback && !namesThisMachine(r.Host) {
		return true // DNS rebinding
	}
	if id.byKey && !id.loopback {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin", "same-site":
	default:
		return true
	}
	origins := r.Header["Origin"]
	return slices.ContainsFunc(origins, func(o string) bool {
		u, err := url.Parse(o)
		return err != nil || u.Scheme != "http" && u.Scheme != "https" || !namesThisMachine(u.Host)
	})
}

// namesThisMachine says whether a Host or origin host names this machine.
func namesThisMachine(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
