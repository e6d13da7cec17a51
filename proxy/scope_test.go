package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

func TestScope(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	keyed := func(key string) string { return "key:" + KeyHash(secret, key) }
	type pairs []string
	for _, tt := range []struct {
		name   string
		change func(*IdentityConfig)
		header pairs
		req    dialect.Request
		want   storage.Scope
		none   bool
	}{
		{name: "own machine", change: func(c *IdentityConfig) { c.Loopback = true },
			want: storage.Scope{Tenant: "local", User: KeyHolderUser}},
		{name: "own machine in a container", change: func(c *IdentityConfig) { c.Loopback, c.Container = true, true },
			header: pairs{"Authorization", "Bearer sk-1"}, none: true},
		{name: "container with a user", change: func(c *IdentityConfig) { c.Container = true },
			header: pairs{"Authorization", "Bearer sk-1", headerUser, "ann"}, want: storage.Scope{Tenant: keyed("sk-1"), User: "ann"}},
		{name: "x-api-key", header: pairs{"X-Api-Key", "sk-2", headerUser, "ann"}, want: storage.Scope{Tenant: keyed("sk-2"), User: "ann"}},
		{name: "api-key", header: pairs{"Api-Key", "sk-3", headerUser, "ann"}, want: storage.Scope{Tenant: keyed("sk-3"), User: "ann"}},
		{name: "no user off loopback", header: pairs{"Authorization", "Bearer sk-1"}, none: true},
		{name: "key holder asked for", change: func(c *IdentityConfig) { c.Anonymous = AnonymousKeyHolder },
			header: pairs{"Authorization", "Bearer sk-1"}, want: storage.Scope{Tenant: keyed("sk-1"), User: KeyHolderUser}},
		{name: "dummy key off loopback", header: pairs{"Authorization", "Bearer ollama", headerUser, "ann"}, none: true},
		{name: "empty bearer", header: pairs{"Authorization", "Bearer ", headerUser, "ann"}, none: true},
		{name: "no key off loopback", header: pairs{headerUser, "ann"}, none: true},
		{name: "one named tenant", change: func(c *IdentityConfig) { c.Tenant = "acme" },
			header: pairs{headerUser, "ann"}, want: storage.Scope{Tenant: "name:acme", User: "ann"}},
		{name: "mapped key", change: func(c *IdentityConfig) { c.Tenants = map[string]string{KeyHash(secret, "sk-1"): "acme"} },
			header: pairs{"Authorization", "Bearer sk-1", headerUser, "ann"}, want: storage.Scope{Tenant: "name:acme", User: "ann"}},
		{name: "foreign user header", change: func(c *IdentityConfig) { c.Loopback = true },
			header: pairs{"X-OpenWebUI-User-Id", "bob"}, want: storage.Scope{Tenant: "local", User: "bob"}},
		{name: "own header before foreign", change: func(c *IdentityConfig) { c.Loopback = true },
			header: pairs{"X-User-Id", "bob", headerUser, "ann"}, want: storage.Scope{Tenant: "local", User: "ann"}},
		{name: "header before body", change: func(c *IdentityConfig) { c.Loopback = true },
			header: pairs{"X-User-Id", "bob"}, req: dialect.Request{User: "carl"}, want: storage.Scope{Tenant: "local", User: "bob"}},
		{name: "body", change: func(c *IdentityConfig) { c.Loopback = true },
			req: dialect.Request{User: "carl", MetadataUser: "m"}, want: storage.Scope{Tenant: "local", User: "carl"}},
		{name: "metadata", change: func(c *IdentityConfig) { c.Loopback = true },
			req: dialect.Request{MetadataUser: "m"}, want: storage.Scope{Tenant: "local", User: "m"}},
		{name: "app and project", change: func(c *IdentityConfig) { c.Loopback = true },
			header: pairs{headerApp, "crm", headerProject, "x"}, want: storage.Scope{Tenant: "local", App: "crm", Project: "x", User: KeyHolderUser}},
		{name: "user named twice", change: func(c *IdentityConfig) { c.Loopback = true },
			header: pairs{headerUser, "ann", headerUser, "bob"}, none: true},
		{name: "nobody can be the key holder by name", change: func(c *IdentityConfig) { c.Loopback = true },
			req: dialect.Request{User: KeyHolderUser}, want: storage.Scope{Tenant: "local", User: cleanID(KeyHolderUser)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultIdentityConfig()
			if tt.change != nil {
				tt.change(&cfg)
			}
			h := http.Header{}
			for i := 0; i < len(tt.header); i += 2 {
				h.Add(tt.header[i], tt.header[i+1])
			}
			got, ok := newIdentity(cfg).scope(secret, h, &tt.req, &client{})
			if ok == tt.none {
				t.Fatalf("scope found: %t, want %t", ok, !tt.none)
			}
			if tt.none {
				return
			}
			for _, p := range []*string{&tt.want.App, &tt.want.Project} {
				if *p == "" {
					*p = DefaultPart
				}
			}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	if cleanID(KeyHolderUser) == KeyHolderUser {
		t.Error("a client can name the anonymous user")
	}
	if long := cleanID(strings.Repeat("x", 600)); len(long) > storage.MaxScopePart {
		t.Errorf("a long id stays %d bytes", len(long))
	}
}

func TestFromPage(t *testing.T) {
	for _, tt := range []struct {
		name, host, origin, site string
		want                     bool
	}{
		{"an SDK", "127.0.0.1:8787", "", "", false},
		{"localhost", "localhost:8787", "", "", false},
		{"IPv6", "[::1]:8787", "", "", false},
		{"own page", "localhost:8787", "http://localhost:3000", "same-site", false},
		{"rebound name", "attacker.example:8787", "", "", true},
		{"foreign origin", "localhost:8787", "https://attacker.example", "", true},
		{"opaque origin", "localhost:8787", "null", "", true},
		{"cross-site fetch", "localhost:8787", "", "cross-site", true},
		{"odd site", "localhost:8787", "", "whatever", true},
		{"look-alike", "127.0.0.1.attacker.example", "", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/v1/chat/completions", nil)
			r.Host = tt.host
			for k, v := range map[string]string{"Origin": tt.origin, "Sec-Fetch-Site": tt.site} {
				if v != "" {
					r.Header.Set(k, v)
				}
			}
			if got := newIdentity(IdentityConfig{Tenant: TenantAuto, Loopback: true}).fromPage(r, ""); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// A listener that others can reach has pages in front of it too, where the tenant is not known by its key.
func TestFromPageOffLoopback(t *testing.T) {
	for _, tt := range []struct {
		tenant, origin, site string
		want                 bool
	}{
		{"me", "", "", false},
		{"me", "https://attacker.example", "", true},
		{"me", "", "cross-site", true},
		{TenantKey, "https://app.example", "cross-site", false},
	} {
		r := httptest.NewRequest("POST", "/v1/chat/completions", nil)
		r.Host = "remora.internal"
		for k, v := range map[string]string{"Origin": tt.origin, "Sec-Fetch-Site": tt.site} {
			if v != "" {
				r.Header.Set(k, v)
			}
		}
		if got := newIdentity(IdentityConfig{Tenant: tt.tenant, Anonymous: AnonymousKeyHolder}).fromPage(r, ""); got != tt.want {
			t.Errorf("%+v: got %t", tt, got)
		}
	}
}
