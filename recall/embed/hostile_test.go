package embed

import (
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// A hostile server costs a call its time, and little memory.
func TestHostileServers(t *testing.T) {
	proxytest.Hostile(t, func(t *testing.T, url string) error {
		cfg := DefaultConfig()
		cfg.URL, cfg.Model = url, "m"
		cfg.QueryTimeout, cfg.Timeout = 500*time.Millisecond, 500*time.Millisecond
		v, err := newClient(t, cfg).Query(t.Context(), "a private text")
		if v != nil || err != nil && strings.Contains(err.Error(), "private") {
			t.Errorf("got %v, %v", v, err)
		}
		return err
	})
}
