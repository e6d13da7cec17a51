package distill

import (
	"net/http"
	"testing"
)

// The proxy of the environment may be Remora's own forward door.
func TestProxyOfTheEnvironmentIsAskedFor(t *testing.T) {
	for _, asked := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.ProxyFromEnvironment = asked
		if used := New(cfg).client.Transport.(*http.Transport).Proxy != nil; used != asked {
			t.Errorf("asked for: %t, used: %t", asked, used)
		}
	}
}
