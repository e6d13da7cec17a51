package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora/config"
)

// The lines of the first start name what another terminal does not know, and
// nothing else.
func TestFlagsOf(t *testing.T) {
	home, own := t.TempDir(), t.TempDir()
	file := filepath.Join(own, "remora.json")
	if err := os.WriteFile(file, []byte(`{"listen": "127.0.0.1:9191"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		given config.Overrides
		env   []string
		addr  string
		want  []string
	}{
		"nothing":          {},
		"the same address": {given: config.Overrides{Listen: ":8787"}},
		"an address":       {given: config.Overrides{Listen: "127.0.0.1:9090"}, want: []string{"--listen", "127.0.0.1:9090"}},
		"any port":         {given: config.Overrides{Listen: "127.0.0.1:0"}, addr: "127.0.0.1:5005", want: []string{"--listen", "127.0.0.1:5005"}},
		"a directory":      {given: config.Overrides{Data: own}, want: []string{"--data", own}},
		"variables": {env: []string{"REMORA_LISTEN", "127.0.0.1:9090", "REMORA_STORAGE_DIR", own},
			want: []string{"--listen", "127.0.0.1:9090", "--data", own}},
		"a file":                {given: config.Overrides{File: file}, want: []string{"--config", file}},
		"a file and an address": {given: config.Overrides{File: file, Listen: "127.0.0.1:8787"}, want: []string{"--config", file, "--listen", "127.0.0.1:8787"}},
		"a file of a variable":  {env: []string{"REMORA_CONFIG", file}, want: []string{"--config", file}},
	} {
		t.Run(name, func(t *testing.T) {
			getenv := environment(append(test.env, "HOME", home)...)
			c, err := config.Load(test.given, getenv, config.Here(getenv))
			if err != nil {
				t.Fatal(err)
			}
			if got := flagsOf(c, test.addr, getenv); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
