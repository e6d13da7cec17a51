package distill

import (
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// A hostile server costs a call its time, and little memory.
func TestHostileServers(t *testing.T) {
	proxytest.Hostile(t, func(t *testing.T, url string) error {
		cfg := DefaultConfig()
		cfg.URL, cfg.Model, cfg.Timeout = url+"/v1", "m", 500*time.Millisecond
		got, err := New(cfg).Distill(t.Context(), window)
		if got != nil {
			t.Errorf("got %v", got)
		}
		return err
	})
}
