package distill

import (
	"net/http"
	"testing"
)

// TestEnvironmentProxyIsOptIn: the proxy of the environment may be Remora's own
// forward listener.
func TestEnvironmentProxyIsOptIn(t *testing.T) {
	for _, asked := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.ProxyFromEnvironment = asked
		if used := New(cfg).client.Transport.(*http.Transport).Proxy != nil; used != asked {
			t.Errorf("asked for: %t, used: %t", asked, used)
		}
	}
}
