package backend

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall"
)

func TestDefaults(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil || c.Mode != ModeLocal {
		t.Errorf("mode %q, %v", c.Mode, err)
	}
	g := c.Gateway
	if g.AppID != "default" || g.ProjectID != "default" || g.TopK != 8 || g.Timeout != 10*time.Second || g.RecallTimeout != time.Second || len(g.Scopes) != 3 {
		t.Errorf("defaults %+v", g)
	}
}

func TestValidate(t *testing.T) {
	valid := func(mode Mode) Config {
		c := DefaultConfig()
		c.Mode = mode
		switch mode {
		case ModeGateway:
			c.Gateway.BaseURL, c.Gateway.UserID, c.Gateway.UserKey = "https://memory.example/v1", "ines", key
		case ModeCurated:
			c.Curated.Dir = "/home/ines/notes"
		}
		return c
	}
	for _, mode := range []Mode{ModeLocal, ModeGateway, ModeCurated} {
		if err := valid(mode).Validate(); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	for _, tt := range []struct {
		name string
		mode Mode
		set  func(*Config)
		want []string // the keys of the problems
	}{
		{"an invalid mode", "both", func(*Config) {}, []string{"memory.mode"}},
		{"no mode", "", func(*Config) {}, []string{"memory.mode"}},
		{"no settings", ModeGateway, func(c *Config) { c.Gateway = GatewayConfig{} },
			[]string{"gateway.baseUrl", "gateway.userId", "gateway.userKey", "gateway.scopes", "gateway.topK", "gateway.timeout", "gateway.recallTimeout"}},
		{"no base URL", ModeGateway, func(c *Config) { c.Gateway.BaseURL = "" }, []string{"gateway.baseUrl"}},
		{"no URL", ModeGateway, func(c *Config) { c.Gateway.BaseURL = "memory.example" }, []string{"gateway.baseUrl"}},
		{"credentials in it", ModeGateway, func(c *Config) { c.Gateway.BaseURL = "https://ines:" + key.Reveal() + "@memory.example" }, []string{"gateway.baseUrl"}},
		{"a query in it", ModeGateway, func(c *Config) { c.Gateway.BaseURL += "?key=" + key.Reveal() }, []string{"gateway.baseUrl"}},
		{"no user", ModeGateway, func(c *Config) { c.Gateway.UserID = " " }, []string{"gateway.userId"}},
		{"no key", ModeGateway, func(c *Config) { c.Gateway.UserKey = "" }, []string{"gateway.userKey"}},
		{"a key of lines", ModeGateway, func(c *Config) { c.Gateway.UserKey += "\nx" }, []string{"gateway.userKey"}},
		{"no scopes", ModeGateway, func(c *Config) { c.Gateway.Scopes = nil }, []string{"gateway.scopes"}},
		{"an unknown scope", ModeGateway, func(c *Config) { c.Gateway.Scopes = []recall.SearchScope{"resources", "everything"} }, []string{"gateway.scopes"}},
		{"a scope twice", ModeGateway, func(c *Config) { c.Gateway.Scopes = []recall.SearchScope{"resources", "resources"} }, []string{"gateway.scopes"}},
		{"topK 0", ModeGateway, func(c *Config) { c.Gateway.TopK = 0 }, []string{"gateway.topK"}},
		{"topK 101", ModeGateway, func(c *Config) { c.Gateway.TopK = 101 }, []string{"gateway.topK"}},
		{"no timeout", ModeGateway, func(c *Config) { c.Gateway.Timeout = 0 }, []string{"gateway.timeout"}},
		{"a negative timeout", ModeGateway, func(c *Config) { c.Gateway.Timeout = -time.Second }, []string{"gateway.timeout"}},
		{"no time for a search", ModeGateway, func(c *Config) { c.Gateway.RecallTimeout = 0 }, []string{"gateway.recallTimeout"}},
		{"a directory too", ModeGateway, func(c *Config) { c.Curated.Dir = "notes" }, []string{"curated.dir"}},
		{"a gateway too", ModeCurated, func(c *Config) { c.Gateway.BaseURL, c.Gateway.UserKey = "https://memory.example", key }, []string{"gateway.baseUrl", "gateway.userKey"}},
		{"a blank directory", ModeCurated, func(c *Config) { c.Curated.Dir = " " }, []string{"curated.dir"}},
		{"a gateway beside one's own", ModeLocal, func(c *Config) { c.Gateway = valid(ModeGateway).Gateway }, []string{"gateway.baseUrl", "gateway.userId", "gateway.userKey"}},
		{"all of a gateway", ModeLocal, func(c *Config) {
			c.Gateway = GatewayConfig{"u", "u", key, "a", "p", []recall.SearchScope{"resources"}, 9, time.Second, time.Minute, true}
		}, []string{"gateway.baseUrl", "gateway.userId", "gateway.userKey", "gateway.appId", "gateway.projectId", "gateway.scopes", "gateway.topK", "gateway.timeout", "gateway.recallTimeout", "gateway.proxyFromEnvironment"}},
	} {
		c := valid(tt.mode)
		tt.set(&c)
		err := c.Validate()
		if err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		problems := strings.Split(err.Error(), "\n")
		if len(problems) != len(tt.want) {
			t.Errorf("%s: %q, want problems of %q", tt.name, problems, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(problems[i], want+": ") {
				t.Errorf("%s: %q, want one of %s", tt.name, problems[i], want)
			}
		}
		if strings.Contains(err.Error(), key.Reveal()) {
			t.Errorf("%s: the error holds the key: %v", tt.name, err)
		}
	}
}

// What can't work is refused when it is made, and never shows the key.
func TestNew(t *testing.T) {
	c := gatewayConfig("http://127.0.0.1:1")
	if _, err := NewGateway(c, Deps{}); err == nil {
		t.Error("a gateway without redaction is made")
	}
	c.TopK = 0
	if _, err := NewGateway(c, deps(&lines{})); err == nil || strings.Contains(err.Error(), key.Reveal()) {
		t.Errorf("got %v", err)
	}
	if _, err := NewCurated(CuratedConfig{Dir: "x"}, nil, Deps{}); err == nil {
		t.Error("curated memory without redaction is made")
	}
	if _, err := NewCurated(CuratedConfig{}, nil, deps(&lines{})); err == nil {
		t.Error("curated memory without files is made")
	}
	if shown := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(shown, key.Reveal()) {
		t.Errorf("the configuration shows the key: %s", shown)
	}
}
