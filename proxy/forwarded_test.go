package proxy

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/identity"
)

// TestForwardedIsNotOnePersons: on one person's machine everything is theirs,
// but for what a reverse proxy on it passes on.
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
		{nil, StatusInjected, "local", identity.KeyHolderUser},
		{[]string{"X-Forwarded-For", "203.0.113.5"}, StatusNoUser, "", ""},
		{[]string{"Via", "1.1 front"}, StatusNoUser, "", ""},
		{[]string{"X-Real-Ip", "203.0.113.5", identity.HeaderUser, "ann"}, StatusInjected, "key:", "ann"},
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
