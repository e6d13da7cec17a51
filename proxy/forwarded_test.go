package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// TestForwardedIsNotOnePersons: on one person's machine everything is theirs, but for what a reverse proxy on it passes on.
func TestForwardedIsNotOnePersons(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.recall.set("fact")
	for _, tt := range []struct {
		headers []string
		status  Status
		tenant  string
		user    string
	}{
		{nil, StatusInjected, localTenant, KeyHolderUser},
		{[]string{"X-Forwarded-For", "203.0.113.5"}, StatusNoUser, "", ""},
		{[]string{"Via", "1.1 front"}, StatusNoUser, "", ""},
		{[]string{"X-Real-Ip", "203.0.113.5", headerUser, "ann"}, StatusInjected, "key:", "ann"},
	} {
		got := r.post(apis[0].body("user: q"+strings.Join(tt.headers, "")), tt.headers...)
		if got.status != tt.status {
			t.Errorf("%q: %s, want %s", tt.headers, got.status, tt.status)
		}
		searches := r.recall.asked()
		if tt.status != StatusInjected {
			if len(searches) != 0 {
				t.Errorf("%q: searched %+v", tt.headers, searches[0].Scope)
			}
			continue
		}
		if s := searches[0].Scope; !strings.HasPrefix(s.Tenant, tt.tenant) || s.User != tt.user {
			t.Errorf("%q: scope %+v", tt.headers, s)
		}
	}
}

// TestForwardedDummyKey: a dummy key tells nobody apart, as off loopback.
func TestForwardedDummyKey(t *testing.T) {
	t.Parallel()
	c := DefaultIdentityConfig()
	c.Loopback = true
	h := http.Header{"X-Forwarded-For": {"203.0.113.5"}, headerUser: {"ann"}, "Authorization": {"Bearer EMPTY"}}
	if s, ok := newIdentity(c).scope([]byte("secret"), h, &dialect.Request{}, &client{}); ok {
		t.Errorf("a dummy key has the scope %+v", s)
	}
}

func TestTenantHashesInAnyCase(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef0123456789abcdef")
	c := DefaultIdentityConfig()
	c.Tenant = TenantKey
	c.Tenants = map[string]string{strings.ToUpper(KeyHash(secret, "a key")): "team"}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := newIdentity(c).keyTenant(secret, "a key"); got != "name:team" {
		t.Errorf("the tenant is %q", got)
	}
}
