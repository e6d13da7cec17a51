package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestUnknownVariables(t *testing.T) {
	c := Default()
	for kv, want := range map[string]string{
		"REMORA_RECALL_TOPK=3":                         "REMORA_RECALL_TOP_K",
		"REMORA_RECALL_TOP_k=3":                        "REMORA_RECALL_TOP_K",
		"REMORA_LISTN=x":                               "REMORA_LISTEN",
		"REMORA_STORAGE_KEYFILE=/x":                    "REMORA_STORAGE_KEY_FILE",
		"REMORA_RECALL_TOP_K=3":                        "",
		"REMORA_CONFIG=/x":                             "",
		"REMORA_LOG_LEVEL_FILE=/x":                     "",
		"REMORA_SERVICE_HOST=10.0.0.1":                 "",
		"REMORA_SERVICE_PORT=8787":                     "",
		"REMORA_SERVICE_PORT_HTTP=8787":                "",
		"REMORA_PORT=tcp://10.0.0.1:8787":              "",
		"REMORA_PORT_8787_TCP_ADDR=10.0.0.1":           "",
		"REMORA_DEV_PORT_8787_TCP=tcp://10.0.0.1:8787": "",
		"REMORA_SERVICE_PORT_8787_TCP_PORT=8787":       "",
		"REMORA_PORT_8787_TCP_PORT=8787":               "",
		"REMORA_PORT=8787":                             "REMORA_LISTEN",
		"REMORA_LISTEN_PORT=8787":                      "REMORA_LISTEN",
		"REMORA_LISTEN_ADDR=:1":                        "REMORA_LISTEN",
		"REMORA_CONFIG_FILE=/x":                        "REMORA_CONFIG",
		"REMORA_DATA=/x":                               "REMORA_STORAGE_DIR",
		"REMORA_FORWARD=:1":                            "REMORA_FORWARD_LISTEN",
		"REMORA_TENANT=me":                             "REMORA_IDENTITY_TENANT",
		"REMORA_UPSTREAM_URL=x":                        "REMORA_UPSTREAM",
		"REMORA_UPSTREM_FILE=/x":                       "REMORA_UPSTREAM_FILE",
		"REMORA_UPSTREAM_FILE=/x":                      "",
		"remora_data=/x":                               "REMORA_STORAGE_DIR",
		"REMORA_HOME=/opt":                             "-",
		"REMORA_KEY_FILE=/x":                           "-",
		"REMORA_RECALL_TOPK=":                          "",
		"PATH=/bin":                                    "",
	} {
		got := strings.Join(unknownVariables([]string{kv}, c.settings()), "\n")
		if want == "-" && strings.HasSuffix(got, " sets nothing: there is no such setting") {
			continue
		}
		if want == "" && got != "" || want != "" && !strings.HasSuffix(got, "did you mean "+want+"?") {
			t.Errorf("%s: got %q, want %q", kv, got, want)
		}
	}
}

func TestHealthForOtherMachines(t *testing.T) {
	pod := testPlace()
	pod.container = true
	for _, test := range []struct {
		address string
		place   Place
		want    int
	}{
		{"", testPlace(), 0}, {"127.0.0.1:8789", testPlace(), 0}, {"[::1]:8789", testPlace(), 0},
		{":8789", testPlace(), 1}, {"192.0.2.1:8789", testPlace(), 1}, {":8789", pod, 0},
	} {
		c := Default()
		c.Health = test.address
		if got := c.Warnings(nil, test.place); len(got) != test.want || test.want > 0 && !strings.HasPrefix(got[0], "health.listen ") {
			t.Errorf("%q (container %t): got %q, want %d", test.address, test.place.container, got, test.want)
		}
	}
}

func TestKeysInTheOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	dir := t.TempDir()
	pod := testPlace()
	pod.container = true
	for _, test := range []struct {
		name, file string
		mode       os.FileMode
		place      Place
		want       []string
	}{
		{"as it is made", "store.key", 0o600, testPlace(), nil},
		{"for all", "store.key", 0o666, testPlace(), []string{"may be read or replaced by others than its owner (mode 0666): make it 0600"}},
		{"for the group", "store.key", 0o640, testPlace(), []string{"may be read by others than its owner (mode 0640)"}},
		{"of another id", "store-0123456789abcdef.key", 0o604, testPlace(), []string{"store-0123456789abcdef.key may be read"}},
		{"a mounted secret for a group", "store.key", 0o440, pod, nil},
		{"a mounted secret for all", "store.key", 0o644, pod, []string{"defaultMode"}},
		{"with the data", "data/store.key", 0o600, testPlace(), []string{"is inside the data directory"}},
		{"beside data of a longer name", "data2/store.key", 0o600, testPlace(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(dir, test.name, test.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, test.mode); err != nil {
				t.Fatal(err)
			}
			c := Default()
			c.Storage.Dir, c.Storage.KeyFile = filepath.Join(dir, test.name, "data"), filepath.Join(filepath.Dir(file), "store.key")
			got := c.Warnings(nil, test.place)
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want %q in it", got[i], want)
				}
			}
		})
	}
	clock := Default()
	clock.Store.ClockFile = "clock"
	if got := clock.Warnings(nil, testPlace()); len(got) != 1 || !strings.HasPrefix(got[0], "storage.clockFile is set") {
		t.Errorf("a clock for tests: got %q, want a warning", got)
	}
	ca := filepath.Join(dir, "ca.key")
	if err := os.WriteFile(ca, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(ca, 0o644); err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.CAKey = ca
	if got := c.Warnings(nil, testPlace()); len(got) != 1 || !strings.Contains(got[0], "key of the certificate authority") {
		t.Errorf("an authority's key for all: got %q, want a warning", got)
	}
}
