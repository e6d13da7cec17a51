// Package backend has the memories that a proxy can work with instead of
// Remora's own: [Gateway], a remote server that speaks the protocol of the
// Memory Gateway and may be another Remora, and [Curated], two files that only
// a tool writes. One [Mode] at a time is in use.
//
// Both recall and persist for package proxy. They guarantee:
//
//   - The traffic never depends on them. Recall honours its context, Enqueue
//     never blocks, and a failure of any kind is an error that the proxy answers
//     by sending the request as it is.
//   - What leaves the process is redacted first, and free of recalled blocks and
//     of thoughts. Only what the user said and the final answer leave.
//   - No error, log line or counter holds a credential, a text or the body of a
//     response. Sessions appear as hashes.
//   - Nothing is tried twice. What failed is an event and a counter.
//
// A Gateway has one person's memory, and so have the files of a directory,
// no matter who asks: the proxy in front of them must serve that person only.
// All methods are safe for concurrent use.
package backend

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// Mode is which memory is in use.
type Mode string

const (
	ModeLocal   Mode = "local"   // Remora's own
	ModeGateway Mode = "gateway" // a remote Memory Gateway
	ModeCurated Mode = "curated" // MEMORY.md and USER.md
)

// Config chooses a memory.
type Config struct {
	Mode    Mode
	Gateway GatewayConfig
	Curated CuratedConfig
}

// GatewayConfig configures a Gateway.
type GatewayConfig struct {
	// BaseURL is what /memories/search is appended to.
	BaseURL string
	// UserID is whose memory it is, of all requests. UserKey is the credential,
	// sent in bodies only.
	UserID    string
	UserKey   redact.Secret
	AppID     string
	ProjectID string
	Scopes    []recall.SearchScope
	TopK      int
	// Timeout limits each request to the gateway. RecallTimeout limits a search,
	// for which a client waits; it also ends at the deadline of its context.
	Timeout       time.Duration
	RecallTimeout time.Duration
	// ProxyFromEnvironment honours HTTP_PROXY, HTTPS_PROXY and NO_PROXY, which
	// may name Remora's own forward listener.
	ProxyFromEnvironment bool
}

// CuratedConfig configures a Curated.
type CuratedConfig struct {
	// Dir is where MEMORY.md and USER.md of one person are, or will be. "" =
	// each user has files of their own, which the memory tool writes.
	Dir string
	// MaxBytes limits what a conversation gets of both files, with what a block
	// adds to each line; 0 = the default. It follows from the bound of the
	// ledger, whose tokens are two bytes: beyond that a block does not fit.
	MaxBytes int
}

// defaultPart is the app and the project unless others are set.
const defaultPart = "default"

// DefaultConfig is local.
func DefaultConfig() Config {
	return Config{
		Mode: ModeLocal,
		Gateway: GatewayConfig{
			AppID: defaultPart, ProjectID: defaultPart, Scopes: []recall.SearchScope{recall.CurrentChat, recall.Resources, recall.AllUserMemory},
			TopK: 8, Timeout: 10 * time.Second, RecallTimeout: time.Second,
		},
		Curated: CuratedConfig{MaxBytes: 15_000},
	}
}

// Validate returns all problems, joined, each with the key of its setting.
// Settings of a mode that is not in use must have their defaults, so that
// nobody takes them for effective.
func (c Config) Validate() error {
	var errs []error
	switch c.Mode {
	case ModeLocal, ModeGateway, ModeCurated:
	default:
		errs = append(errs, errors.New("memory.mode: must be local, gateway or curated"))
	}
	within := func(section string, err error) {
		if j, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range j.Unwrap() {
				errs = append(errs, fmt.Errorf("%s.%w", section, e))
			}
		}
	}
	if c.Mode == ModeGateway {
		within("gateway", c.Gateway.Validate())
	} else {
		for _, key := range c.Gateway.changed() {
			errs = append(errs, fmt.Errorf("gateway.%s: is set, but memory.mode is not gateway", key))
		}
	}
	if c.Mode == ModeCurated {
		within("curated", c.Curated.Validate())
	} else if c.Curated.Dir != "" {
		errs = append(errs, errors.New("curated.dir: is set, but memory.mode is not curated"))
	}
	return errors.Join(errs...)
}

// changed returns the keys of the settings that differ from their defaults.
func (c GatewayConfig) changed() (keys []string) {
	d := DefaultConfig().Gateway
	for _, f := range [...]struct {
		key     string
		changed bool
	}{
		{"baseUrl", c.BaseURL != ""},
		{"userId", c.UserID != ""},
		{"userKey", c.UserKey != ""},
		{"appId", c.AppID != "" && c.AppID != d.AppID},
		{"projectId", c.ProjectID != "" && c.ProjectID != d.ProjectID},
		{"scopes", len(c.Scopes) > 0 && !slices.Equal(c.Scopes, d.Scopes)},
		{"topK", c.TopK != 0 && c.TopK != d.TopK},
		{"timeout", c.Timeout != 0 && c.Timeout != d.Timeout},
		{"recallTimeout", c.RecallTimeout != 0 && c.RecallTimeout != d.RecallTimeout},
		{"proxyFromEnvironment", c.ProxyFromEnvironment},
	} {
		if f.changed {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// Validate returns all problems, joined, each with its key in the section.
func (c GatewayConfig) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: must be %s", key, must))
		}
	}
	u, err := url.Parse(c.BaseURL)
	check(err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "",
		"baseUrl", "an http or https URL without credentials, query or fragment")
	name := func(v string) bool { return len(v) <= storage.MaxScopePart && !strings.ContainsAny(v, "\r\n\x00") }
	check(strings.TrimSpace(c.UserID) != "" && name(c.UserID), "userId", "set, one line of at most 512 bytes")
	check(strings.TrimSpace(c.UserKey.Reveal()) != "" && !strings.ContainsAny(c.UserKey.Reveal(), "\r\n\x00"), "userKey", "set, one line")
	check(name(c.AppID), "appId", "one line of at most 512 bytes")
	check(name(c.ProjectID), "projectId", "one line of at most 512 bytes")
	known := len(c.Scopes) > 0
	for i, s := range c.Scopes {
		known = known && (s == recall.CurrentChat || s == recall.Resources || s == recall.AllUserMemory) && !slices.Contains(c.Scopes[:i], s)
	}
	check(known, "scopes", "at least one of current_chat, resources and all_user_memory, each once")
	check(c.TopK >= 1 && c.TopK <= recall.MaxTopK, "topK", fmt.Sprintf("1..%d", recall.MaxTopK))
	check(c.Timeout > 0, "timeout", "> 0")
	check(c.RecallTimeout > 0, "recallTimeout", "> 0")
	return errors.Join(errs...)
}

// Validate returns all problems, joined, each with its key in the section.
func (c CuratedConfig) Validate() error {
	var errs []error
	if strings.ContainsRune(c.Dir, 0) || c.Dir != "" && strings.TrimSpace(c.Dir) == "" {
		errs = append(errs, errors.New("dir: must be a directory"))
	}
	if c.MaxBytes < 0 {
		errs = append(errs, errors.New("maxBytes: must be >= 0"))
	}
	return errors.Join(errs...)
}
