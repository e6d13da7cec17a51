package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api/mcp"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
)

// TestModes checks what follows from the mode of the memory, and what does not
// go together.
func TestModes(t *testing.T) {
	load := func(change func(*Config)) (Config, string) {
		c := Default()
		change(&c)
		c.Settle(testPlace())
		r := &report{}
		c.validate(r)
		var said []string
		for _, p := range r.problems {
			said = append(said, p.key+": "+p.what)
		}
		return c, strings.Join(said, "\n")
	}
	gateway := func(c *Config) {
		c.Backend.Mode = backend.ModeGateway
		c.Backend.Gateway.BaseURL, c.Backend.Gateway.UserID, c.Backend.Gateway.UserKey = "http://127.0.0.1:1", "ines", "key"
	}
	c, said := load(gateway)
	if said != "" || c.Proxy.RecallDeadline != time.Second || c.Proxy.FirstDeadline != time.Second {
		t.Errorf("gateway: deadline %v, %s", c.Proxy.RecallDeadline, said)
	}
	if _, said := load(func(c *Config) { gateway(c); c.API.MCP = []string{mcp.SetMemory} }); !strings.Contains(said, "api.mcp") {
		t.Errorf("the memory tool in mode gateway: %q", said)
	}
	if _, said := load(func(c *Config) { gateway(c); c.Server.Listen = "0.0.0.0:8787" }); !strings.Contains(said, "memory.mode") {
		t.Errorf("mode gateway for everybody: %q", said)
	}
	c, said = load(func(c *Config) { c.Backend.Mode = backend.ModeCurated })
	if said != "" || !slices.Contains(c.API.MCP, mcp.SetMemory) || c.Proxy.Injection.Placement != proxy.PlacementSystem {
		t.Errorf("curated: tools %q, placement %s, %s", c.API.MCP, c.Proxy.Injection.Placement, said)
	}
	if _, said := load(func(c *Config) { c.API.MCP = []string{"unheard-of"} }); !strings.Contains(said, "api.mcp") {
		t.Errorf("a set that does not exist: %q", said)
	}
}
