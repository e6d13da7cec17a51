package identity

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unsafe"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

func TestScope(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	keyed := func(key string) string { return "key:" + KeyHash(secret, key) }
	type pairs []string
	for _, tt := range []struct {
		name   string
		change func(*Config)
		header pairs
		req    dialect.Request
		want   storage.Scope
		none   bool
	}{
		{name: "own machine", change: func(c *Config) { c.Loopback = true },
			want: storage.Scope{Tenant: "local", User: KeyHolderUser}},
		{name: "own machine in a container", change: func(c *Config) { c.Loopback, c.Container = true, true },
			header: pairs{"Authorization", "Bearer sk-key-of-team-1"}, none: true},
		{name: "container with a user", change: func(c *Config) { c.Container = true },
			header: pairs{"Authorization", "Bearer sk-key-of-team-1", HeaderUser, "ann"}, want: storage.Scope{Tenant: keyed("sk-key-of-team-1"), User: "ann"}},
		{name: "x-api-key", header: pairs{"X-Api-Key", "sk-key-of-team-2", HeaderUser, "ann"}, want: storage.Scope{Tenant: keyed("sk-key-of-team-2"), User: "ann"}},
		{name: "api-key", header: pairs{"Api-Key", "sk-key-of-team-3", HeaderUser, "ann"}, want: storage.Scope{Tenant: keyed("sk-key-of-team-3"), User: "ann"}},
		{name: "no user off loopback", header: pairs{"Authorization", "Bearer sk-key-of-team-1"}, none: true},
		{name: "key holder asked for", change: func(c *Config) { c.Anonymous = AnonymousKeyHolder },
			header: pairs{"Authorization", "Bearer sk-key-of-team-1"}, want: storage.Scope{Tenant: keyed("sk-key-of-team-1"), User: KeyHolderUser}},
		{name: "dummy key off loopback", header: pairs{"Authorization", "Bearer ollama", HeaderUser, "ann"}, none: true},
		{name: "empty bearer", header: pairs{"Authorization", "Bearer ", HeaderUser, "ann"}, none: true},
		{name: "no key off loopback", header: pairs{HeaderUser, "ann"}, none: true},
		{name: "one named tenant", change: func(c *Config) { c.Tenant = "acme" },
			header: pairs{HeaderUser, "ann"}, want: storage.Scope{Tenant: "name:acme", User: "ann"}},
		{name: "mapped key", change: func(c *Config) { c.Tenants = map[string]string{KeyHash(secret, "sk-key-of-team-1"): "acme"} },
			header: pairs{"Authorization", "Bearer sk-key-of-team-1", HeaderUser, "ann"}, want: storage.Scope{Tenant: "name:acme", User: "ann"}},
		{name: "foreign user header", change: func(c *Config) { c.Loopback = true },
			header: pairs{"X-OpenWebUI-User-Id", "bob"}, want: storage.Scope{Tenant: "local", User: "bob"}},
		{name: "own header before foreign", change: func(c *Config) { c.Loopback = true },
			header: pairs{"X-User-Id", "bob", HeaderUser, "ann"}, want: storage.Scope{Tenant: "local", User: "ann"}},
		{name: "header before body", change: func(c *Config) { c.Loopback = true },
			header: pairs{"X-User-Id", "bob"}, req: dialect.Request{User: "carl"}, want: storage.Scope{Tenant: "local", User: "bob"}},
		{name: "body", change: func(c *Config) { c.Loopback = true },
			req: dialect.Request{User: "carl", MetadataUser: "m"}, want: storage.Scope{Tenant: "local", User: "carl"}},
		{name: "metadata", change: func(c *Config) { c.Loopback = true },
			req: dialect.Request{MetadataUser: "m"}, want: storage.Scope{Tenant: "local", User: "m"}},
		{name: "app and project", change: func(c *Config) { c.Loopback = true },
			header: pairs{HeaderApp, "crm", HeaderProject, "x"}, want: storage.Scope{Tenant: "local", App: "crm", Project: "x", User: KeyHolderUser}},
		{name: "user named twice", change: func(c *Config) { c.Loopback = true },
			header: pairs{HeaderUser, "ann", HeaderUser, "bob"}, none: true},
		{name: "nobody can be the key holder by name", change: func(c *Config) { c.Loopback = true },
			req: dialect.Request{User: KeyHolderUser}, none: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			if tt.change != nil {
				tt.change(&cfg)
			}
			h := http.Header{}
			for i := 0; i < len(tt.header); i += 2 {
				h.Add(tt.header[i], tt.header[i+1])
			}
			got, ok, _ := New(cfg, nil).Scope(secret, h, &tt.req, &Profile{})
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
		{"a container's name for its host", "host.docker.internal:8787", "", "", false},
		{"Podman's", "host.containers.internal", "", "", false},
		{"a page of a container", "host.docker.internal:8787", "http://host.docker.internal:3000", "", false},
		{"looks like it", "host.docker.internal.attacker.example", "", "", true},
		{"another internal name", "wiki.corp.internal", "", "", true},
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
			if got := New(Config{Tenant: TenantAuto, Loopback: true}, nil).FromPage(r, ""); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// A listener that others can reach has pages in front of it too, where the
// tenant is not known by its key.
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
		if got := New(Config{Tenant: tt.tenant, Anonymous: AnonymousKeyHolder}, nil).FromPage(r, ""); got != tt.want {
			t.Errorf("%+v: got %t", tt, got)
		}
	}
}

// TestForwardedDummyKey: a dummy key tells nobody apart, as off loopback.
func TestForwardedDummyKey(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	c.Loopback = true
	h := http.Header{"X-Forwarded-For": {"203.0.113.5"}, HeaderUser: {"ann"}, "Authorization": {"Bearer EMPTY"}}
	if s, ok, _ := New(c, nil).Scope([]byte("secret"), h, &dialect.Request{}, &Profile{}); ok {
		t.Errorf("a dummy key has the scope %+v", s)
	}
}

func TestTenantHashesInAnyCase(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef0123456789abcdef")
	c := DefaultConfig()
	c.Tenant = TenantKey
	c.Tenants = map[string]string{strings.ToUpper(KeyHash(secret, "a key")): "team"}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := New(c, nil).keyTenant(secret, "a key"); got != "name:team" {
		t.Errorf("the tenant is %q", got)
	}
}

// Different credentials, users, apps or projects never share a scope, however
// the ids are crafted.
func TestScopesNeverCollide(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	cfg := DefaultConfig()
	id := New(cfg, nil)
	rng := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "b", "\x00", "/", "|", ":", "key:", "name:", "local", "default", "sha256:", "\u200b", " ", "é"}
	word := func() string {
		var b strings.Builder
		for range 1 + rng.IntN(4) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	type who struct{ key, user, app, project string }
	scopes := map[storage.Scope]who{}
	for range 20000 {
		w := who{"sk-real-" + word(), word(), word(), word()}
		if w.app == DefaultPart || strings.TrimSpace(w.app) == "" || w.project == DefaultPart || strings.TrimSpace(w.project) == "" {
			continue // is what a request without one has
		}
		head := map[string][]string{
			"Authorization": {"Bearer " + w.key}, HeaderUser: {w.user}, HeaderApp: {w.app}, HeaderProject: {w.project},
		}
		s, ok, _ := id.Scope(secret, head, &dialect.Request{}, &Profile{})
		if !ok { // it holds what can't be a name
			continue
		}
		w.key = strings.TrimSpace(w.key)
		if other, found := scopes[s]; found && other != w {
			t.Fatalf("%+v and %+v collide", other, w)
		}
		scopes[s] = w
	}
}

// keeps reports whether part keeps the bytes of whole in memory.
func keeps(part, whole string) bool {
	at, start := uintptr(unsafe.Pointer(unsafe.StringData(part))), uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	return part != "" && start <= at && at < start+uintptr(len(whole))
}

// Ids live for a day, and are counted as what they say: they must not hold what
// they were cut out of.
func TestIDsAreCutOff(t *testing.T) {
	whole := "id" + strings.Repeat(" ", 4<<10)
	if id, _ := nameOf(whole[:2]); id != "id" || keeps(id, whole) {
		t.Errorf("%q keeps what it was cut out of", id)
	}
	for _, value := range []string{
		"user_dev_account_acc_session_ses" + strings.Repeat("s", 4<<10),
		`{"account_uuid":"acc","pad":"` + strings.Repeat("p", 4<<10) + `"}`,
	} {
		s, err := parseSource("header:X-Ids#account_uuid")
		if err != nil {
			t.Fatal(err)
		}
		if id := s.read(http.Header{"X-Ids": {value}}, &dialect.Request{}); id != "acc" || keeps(id, value) {
			t.Errorf("%q keeps what it was read from", id)
		}
	}
}
