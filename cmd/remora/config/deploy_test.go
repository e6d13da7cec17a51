package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The variables that are set where Remora is deployed are settings.
func TestDeploymentsNameSettings(t *testing.T) {
	c := Default()
	variables := append(knownVariables(c.settings()), "REMORA_CONFIG")
	set := regexp.MustCompile(`(?m)^\s*(?:Environment=|- )?(REMORA_[A-Z_]+)(?:=|: )`)
	for _, file := range []string{"systemd/remora.service", "compose/docker-compose.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		found := set.FindAllSubmatch(text, -1)
		if len(found) < 3 {
			t.Errorf("deploy/%s sets %d variables: looking in the wrong place", file, len(found))
		}
		for _, m := range found {
			if name := string(m[1]); !slices.Contains(variables, name) {
				t.Errorf("deploy/%s sets %s, which is not a setting", file, name)
			}
		}
	}
}
