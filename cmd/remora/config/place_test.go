package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage/badger"
)

func TestDirectories(t *testing.T) {
	for _, test := range []struct {
		name       string
		place      Place
		data, conf string
	}{
		{"linux", Place{os: "linux", home: "/home/ada", getenv: environment()}, "/home/ada/.local/share/remora", "/home/ada/.config/remora"},
		{"macOS", Place{os: "darwin", home: "/Users/ada", getenv: environment()}, "/Users/ada/Library/Application Support/remora", "/Users/ada/.config/remora"},
		{"windows", Place{os: "windows", home: "/u", getenv: environment("LocalAppData", "/u/local", "AppData", "/u/roaming")}, "/u/local/remora", "/u/roaming/remora"},
		{"XDG", Place{os: "linux", home: "/home/ada", getenv: environment("XDG_DATA_HOME", "/d", "XDG_CONFIG_HOME", "/c")}, "/d/remora", "/c/remora"},
		{"no home", Place{os: "linux", getenv: environment()}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := filepath.ToSlash(test.place.dataDir()); got != test.data {
				t.Errorf("data: got %q, want %q", got, test.data)
			}
			if got := filepath.ToSlash(test.place.configDir()); got != test.conf {
				t.Errorf("configuration: got %q, want %q", got, test.conf)
			}
		})
	}
}

func TestInContainer(t *testing.T) {
	for _, test := range []struct {
		name string
		env  []string
		file map[string]string
		want bool
	}{
		{"a machine", nil, map[string]string{"/proc/1/cgroup": "0::/init.scope\n"}, false},
		{"not linux", nil, nil, false},
		{"docker", nil, map[string]string{"/.dockerenv": ""}, true},
		{"docker, on an overlay", nil, map[string]string{"/.dockerenv": "", "/proc/self/mountinfo": "27 1 0:51 / / rw - overlay overlay rw,lowerdir=/x\n"}, true},
		{"docker, on a part of a disk", nil, map[string]string{"/.dockerenv": "", "/proc/self/mountinfo": "27 1 8:1 /docker/rootfs / rw - ext4 /dev/sda1 rw\n"}, true},
		{"a virtual machine made of an image", nil, map[string]string{"/.dockerenv": "", "/proc/self/mountinfo": "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"}, false},
		{"a pod in a virtual machine", []string{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, map[string]string{"/proc/self/mountinfo": "27 1 254:0 / / rw - ext4 /dev/vda rw\n"}, true},
		{"podman", nil, map[string]string{"/run/.containerenv": ""}, true},
		{"a pod", []string{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, nil, true},
		{"containerd with cgroup v1", nil, map[string]string{"/proc/1/cgroup": "1:cpu:/kubepods/besteffort/pod1/abc\n"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := inContainer(environment(test.env...), func(name string) ([]byte, error) {
				if content, ok := test.file[name]; ok {
					return []byte(content), nil
				}
				return nil, os.ErrNotExist
			})
			if got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	// What can't be told counts as a container.
	if !inContainer(environment(), func(string) ([]byte, error) { return nil, errors.New("permission denied") }) {
		t.Error("a marker that can't be read: got no container, want one")
	}
}

func TestContainerNeedsANamedKey(t *testing.T) {
	pod := testPlace()
	pod.container = true
	c, err := Load(Overrides{}, environment(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if c.NoKey == "" || c.Storage.KeyFile != "" || !c.Proxy.Identity.Container {
		t.Errorf("got key file %q and reason %q, want none and a reason", c.Storage.KeyFile, c.NoKey)
	}
	c, err = Load(Overrides{}, environment("REMORA_STORAGE_KEY_FILE", "/data/store.key"), pod)
	if err != nil {
		t.Fatal(err)
	}
	if c.NoKey != "" || c.Storage.KeyFile != "/data/store.key" {
		t.Errorf("got key file %q and reason %q, want the named file", c.Storage.KeyFile, c.NoKey)
	}
}

func TestEphemeral(t *testing.T) {
	mounts := `27 1 0:51 / / rw - overlay overlay rw,lowerdir=/x
30 27 8:1 /volumes/a /data rw,relatime - ext4 /dev/sda1 rw
31 27 0:60 / /run rw shared:1 - tmpfs tmpfs rw
32 31 8:1 /secret /run/my\040secrets ro master:2 - ext4 /dev/sda1 ro
`
	for path, want := range map[string]bool{
		"/etc/remora/store.key": true, "/data/store.key": false, "/database/store.key": true, "/run/secrets/key": true, "/run/my secrets/key": false,
	} {
		if got := ephemeral(path, func(string) ([]byte, error) { return []byte(mounts), nil }); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	if ephemeral("/data", func(string) ([]byte, error) { return nil, os.ErrNotExist }) {
		t.Error("where nothing can be told: got true, want false")
	}
}

// TestNewKeyPlace: no key is made where it may be lost, or where it may be
// another store's.
func TestNewKeyPlace(t *testing.T) {
	pod := testPlace()
	pod.container, pod.ephemeral = true, func(path string) bool { return !strings.HasPrefix(path, "/data") }
	for _, test := range []struct {
		name  string
		place Place
		env   []string
		data  string
		want  badger.NewKeyPlace
	}{
		{"default directory", testPlace(), nil, "", badger.NewKeyInFile},
		{"default directory, named", testPlace(), nil, "/home/ada/.local/share/remora/", badger.NewKeyInFile},
		{"another directory", testPlace(), nil, "/srv/b", badger.NewKeyBeside},
		{"named key file", testPlace(), []string{"REMORA_STORAGE_KEY_FILE", "/keys/b"}, "/srv/b", badger.NewKeyOnMount},
		{"a volume", pod, []string{"REMORA_STORAGE_KEY_FILE", "/data/key"}, "/data/store", badger.NewKeyOnMount},
		{"data on a volume, the key not", pod, []string{"REMORA_STORAGE_KEY_FILE", "/keys/key"}, "/data/store", badger.NewKeyNowhere},
		{"nothing on a volume", pod, []string{"REMORA_STORAGE_KEY_FILE", "/keys/key"}, "/tmp/store", badger.NewKeyOnMount},
	} {
		c, err := Load(Overrides{Data: test.data}, environment(test.env...), test.place)
		if err != nil || c.Storage.NewKey != test.want {
			t.Errorf("%s: got %d, %v, want %d", test.name, c.Storage.NewKey, err, test.want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:8787": true, "127.9.9.9:1": true, "[::1]:8787": true, "localhost:8787": true, "[::ffff:127.0.0.1]:1": true,
		":8787": false, "0.0.0.0:8787": false, "[::]:8787": false, "10.0.0.1:1": false, "example.com:1": false, "127.0.0.1": false,
	} {
		if got := loopback(address); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}
