package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// composition is what the tests look at of a docker-compose.yaml.
type composition struct {
	Services map[string]struct {
		Image       string
		Ports       []string
		Volumes     []string
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
	}
	Volumes map[string]any
}

// Everything that the containers mount exists, their images have a version, and
// nothing is reachable from another machine.
func TestCompose(t *testing.T) {
	dir := filepath.Join("..", "..", "deploy", "compose")
	var c composition
	if err := yaml.Unmarshal([]byte(readRoot(t, "deploy/compose/docker-compose.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Services) != 4 {
		t.Fatalf("got %d services", len(c.Services))
	}
	version := regexp.MustCompile(`^[a-z/-]+:v?\d+\.\d+\.\d+$`)
	for name, s := range c.Services {
		if name != "remora" && !version.MatchString(s.Image) {
			t.Errorf("%s: image %q has no version", name, s.Image)
		}
		if len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) != 1 {
			t.Errorf("%s keeps capabilities, or may gain some", name)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: port %q is published beyond loopback", name, port)
			}
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(source, ".") {
				if _, ok := c.Volumes[source]; !ok {
					t.Errorf("%s: volume %q is not declared", name, source)
				}
				continue
			}
			path := filepath.Join(dir, filepath.FromSlash(source))
			if _, err := os.Stat(filepath.Dir(path)); err != nil {
				continue // the whole folder is missing: it is not a wrong name
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The other files are read by their programs; here, that they are YAML and name
// the services and ports that there are.
func TestComposeFiles(t *testing.T) {
	for file, wants := range map[string][]string{
		"collector.yaml":           {"0.0.0.0:4318", "port: 8888"},
		"prometheus.yaml":          {"remora:8789", "collector:8888"},
		"grafana/datasources.yaml": {"http://prometheus:9090"},
		"grafana/dashboards.yaml":  {"/var/lib/grafana/dashboards"},
	} {
		text := readRoot(t, "deploy/compose/"+file)
		var any map[string]any
		if err := yaml.Unmarshal([]byte(text), &any); err != nil || len(any) == 0 {
			t.Errorf("%s: %v", file, err)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", file, want)
			}
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is not installed (prometheus of Debian)")
		}
		t.Skip("promtool is not installed")
	}
	file := filepath.Join("..", "..", "deploy", "compose", "prometheus.yaml")
	if out, err := exec.Command(promtool, "check", "config", "--syntax-only", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
