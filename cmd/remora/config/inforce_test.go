package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
)

// inForce loads a configuration and returns its settings by key.
func inForce(t *testing.T, flags Overrides, where Place, environ ...string) map[string]api.Setting {
	t.Helper()
	c, err := Load(flags, environment(environ...), where)
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]api.Setting{}
	for _, s := range c.InForce() {
		byKey[s.Key] = s
	}
	return byKey
}

func TestInForce(t *testing.T) {
	file := writeFile(t, `{
  "recall": {"topK": 3, "scopes": ["resources", "current_chat"]},
  "policy": [
    {"upstream": "x", "memory": "off"}
  ],
  "memory": {"mode": "curated"},
  "persist": {"retention": "2160h"},
  "api": {"token": "0123456789abcdef"}
}`)
	where := testPlace()
	where.memory = 256 << 20
	got := inForce(t, Overrides{File: file, Listen: "127.0.0.1:1"}, where,
		"REMORA_LOG_LEVEL", "debug", "REMORA_UPSTREAM", "https://llm.example", "REMORA_IDENTITY_DUMMY_KEYS", "one,two")
	for key, want := range map[string][4]string{ // value, default, from, whether it is changed
		"listen":              {"127.0.0.1:1", "127.0.0.1:8787", "--listen", "true"},
		"log.level":           {"debug", "info", "REMORA_LOG_LEVEL", "true"},
		"recall.topK":         {"3", "8", "config.json:2", "true"},
		"recall.scopes":       {"resources, current_chat", "current_chat, resources, all_user_memory", "config.json:2", "true"},
		"persist.retention":   {"2160h", "2160h", "config.json:7", "false"},
		"api.token":           {"set", "not set", "config.json:8", "true"},
		"distill.key":         {"not set", "not set", "default", "false"},
		"identity.dummyKeys":  {"2 entries", "0 entries", "REMORA_IDENTITY_DUMMY_KEYS", "true"},
		"injection.placement": {"system", "beforeUser", "follows from other settings", "true"},
		"storage.memoryBytes": {"100663296", "134217728", "fitted to the memory limit", "true"},
		"storage.dir":         {"/home/ada/.local/share/remora", "/home/ada/.local/share/remora", "default", "false"},
		"policy":              {`[{"upstream":"x","model":"","allow":{"kinds":[],"tags":[],"projects":[]},"memory":"off"}]`, "[]", "config.json:3", "true"},
	} {
		s := got[key]
		if diff := cmp.Diff(want, [4]string{s.Value, s.Default, s.From, fmt.Sprint(s.Changed)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if s := got["upstreams"]; s.From != "REMORA_UPSTREAM" || s.Env != "REMORA_UPSTREAM" || s.Section != "Listener and upstreams" || !strings.Contains(s.Value, "https://llm.example") {
		t.Errorf("upstreams: %+v", s)
	}
	if s := got["recall.topK"]; s.Section != "recall" || s.Env != "REMORA_RECALL_TOP_K" || s.Doc == "" {
		t.Errorf("recall.topK: %+v", s)
	}
	if s := got["api.prices"]; s.Env != "" || strings.Contains(s.Doc, "](") {
		t.Errorf("api.prices: %+v", s)
	}
	c := Default()
	for _, s := range c.settings() {
		if _, there := got[s.key]; !there {
			t.Errorf("%s is missing", s.key)
		}
	}
	for _, s := range c.InForce() {
		if s.Changed || s.From != "default" {
			t.Errorf("the defaults: %+v", s)
		}
	}
}

// TestInForceHidesSecrets gives a value that must not be shown to every secret,
// and puts it into every place of a URL that may hold a credential.
func TestInForceHidesSecrets(t *testing.T) {
	const canary = "c0ffee" // may be part of a key in hex
	c := Default()
	var environ, secrets []string
	for _, s := range c.settings() {
		switch {
		case s.at.kind() == kindSecret:
			environ = append(environ, s.env(), strings.Repeat(canary, 10)+"beef")
			secrets = append(secrets, s.key)
		case s.credentials:
			environ = append(environ, s.env(), canary+","+canary)
		case strings.HasSuffix(strings.ToLower(s.key), "url"):
			environ = append(environ, s.env(), "https://"+canary+":a/b?"+canary+"@llm.example/v1?key="+canary+"#"+canary)
		}
	}
	if len(secrets) < 5 {
		t.Fatalf("only %q are secrets", secrets)
	}
	environ = append(environ, "REMORA_UPSTREAM", "https://"+canary+"@llm.example?key="+canary)
	c, _ = Load(Overrides{}, environment(environ...), testPlace()) // which reports the URLs
	all, err := json.Marshal(c.InForce())
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.Index(string(all), canary); i >= 0 {
		t.Errorf("a credential is shown: %s", all[max(i-200, 0):i])
	}
	for _, s := range c.InForce() {
		if slices.Contains(secrets, s.Key) && (s.Value != "set" || !s.Changed) {
			t.Errorf("%+v", s)
		}
	}
}

func TestWithoutUser(t *testing.T) {
	for text, want := range map[string]string{
		"http://localhost:11434":               "http://localhost:11434",
		"https://llm.example/v1/x":             "https://llm.example/v1/x",
		"https://user:password@llm.example/v1": "https://[hidden]@llm.example/v1",
		"https://llm.example/v1?key=x":         "https://llm.example/v1?[hidden]",
		"https://u:a/b?c@llm.example#x":        "https://[hidden]@llm.example#[hidden]",
		"llm.example=http://u@x":               "llm.example=http://[hidden]@x",
		"What is up?":                          "What is up?",
	} {
		if got := withoutUser(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestPrices(t *testing.T) {
	load := func(prices string) (Config, error) {
		return Load(Overrides{File: writeFile(t, `{"api": {"prices": `+prices+`}}`)}, environment(), testPlace())
	}
	c, err := load(`[{"model": "claude-*", "currency": "USD", "input": 3, "cacheRead": 0.3, "cacheWrite": 3.75, "output": 15}]`)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Price{{Model: "claude-*", Currency: "USD", Input: 3, CacheRead: 0.3, CacheWrite: 3.75, Output: 15}}
	if diff := cmp.Diff(want, c.API.Prices); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for prices, said := range map[string]string{
		`[{"model": "x", "currency": "dollars"}]`:                                "api.prices[0].currency: must be three capital letters, as in ISO 4217 (config.json:1)",
		`[{"currency": "USD", "input": -1}]`:                                     "api.prices[0].input: must be a number between 0",
		`[{"currency": "USD", "input": 2000000}]`:                                "api.prices[0].input: must be 0..1000000",
		`[{"currency": "USD", "price": 1}]`:                                      "api.prices[0].price: unknown key",
		"[" + strings.Repeat(`{"currency":"EUR"},`, 200) + `{"currency":"EUR"}]`: "api.prices: must be at most 200",
	} {
		if _, err := load(prices); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%.40s: got %v, want %s", prices, err, said)
		}
	}
}
