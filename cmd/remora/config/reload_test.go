package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/policy"
)

// loadText loads a configuration file with this text.
func loadText(t *testing.T, text string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Overrides{File: file}, func(string) string { return "" }, Place{os: "linux", home: "/home/ann"})
}

// Only some settings change while Remora runs. All others are named, and keep
// the values that are in force.
func TestReload(t *testing.T) {
	const first = `{"listen": "127.0.0.1:1000", "storage": {"key": "` + "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f" + `"}}`
	for _, test := range []struct {
		name, text       string
		changed, waiting []string
	}{
		{"nothing", first, nil, nil},
		{"what can change", `{"listen": "127.0.0.1:1000", "log": {"level": "debug"},
			"storage": {"key": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"},
			"policy": [{"upstream": "openai", "memory": "off"}],
			"api": {"prices": [{"model": "", "currency": "EUR", "input": 1}]}}`,
			[]string{"policy", "api.prices", "log.level"}, nil},
		{"what can't", `{"listen": "127.0.0.1:2000", "recall": {"topK": 3}, "log": {"level": "warn"}}`,
			[]string{"log.level"}, []string{"listen", "recall.topK", "storage.keyFile", "storage.key"}},
		{"rules for other upstreams", `{"listen": "127.0.0.1:1000", "log": {"level": "debug"},
			"storage": {"key": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"},
			"upstreams": [{"name": "local", "url": "http://127.0.0.1:2000", "paths": ["/"]}],
			"policy": [{"upstream": "local", "memory": "off"}]}`,
			[]string{"log.level"}, []string{"upstreams", "policy"}},
		{"a secret alone", strings.ReplaceAll(first, "0f", "f0"), nil, []string{"storage.key"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := loadText(t, first)
			if err != nil {
				t.Fatal(err)
			}
			next, err := loadText(t, test.text)
			if err != nil {
				t.Fatal(err)
			}
			now, changed, waiting := c.Reload(&next)
			if !slices.Equal(changed, test.changed) || !slices.Equal(waiting, test.waiting) {
				t.Errorf("changed %q, waiting %q; want %q, %q", changed, waiting, test.changed, test.waiting)
			}
			if now.Server.Listen != "127.0.0.1:1000" || now.Recall.TopK != c.Recall.TopK {
				t.Errorf("what needs a restart has changed: %s, %d", now.Server.Listen, now.Recall.TopK)
			}
			if _, again, _ := now.Reload(&next); len(again) > 0 {
				t.Errorf("changed again: %q", again)
			}
			if c.Log.Level != "info" || len(c.Proxy.Policy) > 0 {
				t.Error("the configuration before has changed")
			}
		})
	}
}

// What is shown of the settings in force names the place that they were read
// from last.
func TestReloadedSettingsInForce(t *testing.T) {
	c, err := loadText(t, `{"policy": [{"upstream": "openai", "memory": "off"}, {"memory": "read"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	next, err := loadText(t, "{\n\"policy\": [{\"upstream\": \"openai\", \"memory\": \"read\"}],\n\"log\": {\"level\": \"debug\"}}")
	if err != nil {
		t.Fatal(err)
	}
	now, _, _ := c.Reload(&next)
	if len(now.Proxy.Policy) != 1 || now.Proxy.Policy[0].Memory != policy.MemoryRead {
		t.Errorf("policy %+v", now.Proxy.Policy)
	}
	for _, s := range now.InForce() {
		switch s.Key {
		case "policy":
			if s.From != "config.json:2" || strings.Contains(s.Value, "off") {
				t.Errorf("policy %s from %s", s.Value, s.From)
			}
		case "log.level":
			if s.From != "config.json:3" || s.Value != "debug" {
				t.Errorf("log.level %s from %s", s.Value, s.From)
			}
		}
	}
}

// Ports that are open already decide what addresses mean: off loopback, whose
// memory a request is about has to be known.
func TestSocketsAreTheAddresses(t *testing.T) {
	getenv := func(string) string { return "" }
	c, err := Load(Overrides{Listen: "127.0.0.1:1", Sockets: map[string]string{"listen": "0.0.0.0:8787", "api.listen": "127.0.0.1:99"}},
		getenv, Place{os: "linux", home: "/home/ann"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.Listen != "0.0.0.0:8787" || c.Proxy.Identity.Loopback || c.API.Listen != "127.0.0.1:99" || c.Forward.Listen != "" {
		t.Errorf("listen %s (loopback %t), api.listen %s, forward %q", c.Server.Listen, c.Proxy.Identity.Loopback, c.API.Listen, c.Forward.Listen)
	}
	if _, err := Load(Overrides{Sockets: map[string]string{"forward.listen": "0.0.0.0:8789"}}, getenv, Place{os: "linux", home: "/home/ann"}); err == nil ||
		!strings.Contains(err.Error(), "forward.") || !strings.Contains(err.Error(), socketOrigin) {
		t.Errorf("an open forward proxy: %v", err)
	}
}
