// Package identity decides whose memory a request is about, and what in it a
// person wrote.
//
// It works on the request's head and its parsed body alone: nothing here does
// I/O, keeps state or reads a clock, and a credential never leaves it except as
// a keyed hash. If it can't decide for certain, the answer is nobody: a header
// that appears twice with different values, a body that names an object of
// several ids, a browser page of another site.
//
// The proxy makes one [Resolver] and asks it for the scope and for the
// [Profile] of the program that sent the request. Known programs are data, in
// clients.json; a configuration adds to them. All methods may be called
// concurrently.
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Settings of identity that are not names.
const (
	TenantAuto = "auto" // local on a loopback listener outside containers, else key
	TenantKey  = "key"  // by the upstream credential

	AnonymousAuto      = "auto"      // keyHolder on a loopback listener outside containers, else off
	AnonymousKeyHolder = "keyHolder" // the user is the holder of the key
	AnonymousOff       = "off"       // no user, no memory

	SubAgentsOn   = "on"   // like the agent that they belong to
	SubAgentsRead = "read" // memories, but nothing of theirs is stored
	SubAgentsOff  = "off"
)

// Request headers that name the parts of a scope, in canonical form.
const (
	HeaderUser         = "X-Remora-User"
	HeaderConversation = "X-Remora-Conversation"
	HeaderApp          = "X-Remora-App"
	HeaderProject      = "X-Remora-Project"
)

// KeyHolderUser is the user of keyHolder mode. The NUL keeps it apart from
// every name that a client can send, see nameOf.
const KeyHolderUser = "\x00key-holder"

// DefaultPart is the app or project of requests that name none.
const DefaultPart = "default"

// localTenant is the tenant of one person's machine, whatever keys the programs
// on it use.
const localTenant = "local"

// Config is what decides whose memory a request is about.
type Config struct {
	// Tenant is auto, key, or the name of the one tenant that all traffic
	// belongs to.
	Tenant string
	// Tenants maps key hashes, as `remora tenant hash` prints them (64 hex
	// digits), to tenant names: several keys, one memory. It counts where
	// tenants are by key.
	Tenants map[string]string
	// Anonymous is auto, keyHolder or off.
	Anonymous string
	// UserHeaders and ConversationHeaders are tried in order after
	// X-Remora-User and X-Remora-Conversation.
	UserHeaders         []string
	ConversationHeaders []string
	// SubAgents is what sub-agents of known clients get where the request does
	// not ask for a mode itself: on, read or off.
	SubAgents string
	// DummyKeys are credentials that identify nobody, in addition to those that
	// are known by their shape (dummies.go). Only their letters and digits
	// count. Where tenants are by key they get no memory off loopback.
	DummyKeys []string
	// Loopback: the listener can be reached from this machine only.
	Loopback bool
	// Container: the listener runs in a container.
	Container bool
}

// DefaultConfig knows the headers that gateways, user interfaces and agents
// send by default.
func DefaultConfig() Config {
	return Config{
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
	}
}

// Validate reports all problems, each with its key.
func (c Config) Validate() error {
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

// Resolver resolves scopes, conversations and clients. It is immutable.
type Resolver struct {
	byKey     bool // tenants are by credential
	tenant    string
	tenants   map[string]string
	keyHolder bool
	// installations: the id of the client's installation identifies the user
	// where nothing else does. Only auto uses it: off means that requests
	// without a user get no memory.
	installations       bool
	loopback            bool
	dummies             map[string]bool // as letters returns them
	userHeaders         []string        // canonical
	conversationHeaders []string
	profiles            []*Profile // with a match, in order
	unknown             *Profile
	// forwarded resolves the scopes of requests that another proxy on one
	// person's machine forwards, which may be anybody's; nil elsewhere.
	forwarded *Resolver
}

// New returns a Resolver for a valid Config. Configured clients come before the
// known ones and replace those of the same name.
func New(c Config, clients []Client) *Resolver {
	r := newResolver(c)
	r.profiles, r.unknown = newProfiles(clients)
	return r
}

func newResolver(c Config) *Resolver {
	ownMachine := c.Loopback && !c.Container
	r := &Resolver{tenants: make(map[string]string, len(c.Tenants)), loopback: c.Loopback, dummies: map[string]bool{}}
	for hash, name := range c.Tenants {
		r.tenants[strings.ToLower(hash)] = name
	}
	if ownMachine {
		elsewhere := c
		elsewhere.Loopback = false
		r.forwarded = newResolver(elsewhere)
	}
	switch {
	case c.Tenant == TenantKey, c.Tenant == TenantAuto && !ownMachine:
		r.byKey = true
	case c.Tenant == TenantAuto:
		r.tenant = localTenant
	default:
		r.tenant = "name:" + c.Tenant
	}
	r.keyHolder = c.Anonymous == AnonymousKeyHolder || c.Anonymous == AnonymousAuto && ownMachine
	r.installations = c.Anonymous == AnonymousAuto
	for _, k := range c.DummyKeys {
		r.dummies[letters(k)] = true
	}
	canonical := func(first string, others []string) []string {
		out := []string{first}
		for _, h := range others {
			out = append(out, http.CanonicalHeaderKey(h))
		}
		return out
	}
	r.userHeaders, r.conversationHeaders = canonical(HeaderUser, c.UserHeaders), canonical(HeaderConversation, c.ConversationHeaders)
	return r
}
