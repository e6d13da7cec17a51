//go:build unix

package main

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora/config"
)

// Commands of root on a store that stands still, of a service with a user of
// its own, leave nothing that the service can't open.
func TestRootLeavesTheStoreToItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("only root works on the stores of others")
		}
		t.Skip("only root works on the stores of others")
	}
	const user = 65534
	dir := t.TempDir()
	data, key, out := filepath.Join(dir, "own", "data"), filepath.Join(dir, "own", "store.key"), t.TempDir()
	c := demoConfig(filepath.Dir(data), "http://127.0.0.1:1")
	c.Store = config.Default().Store
	c.Store.ReserveBytes = 0
	c.Storage.KeyFile = key
	if err := os.Mkdir(filepath.Dir(data), 0o700); err != nil {
		t.Fatal(err)
	}
	ranStore(t, c)
	each := func(do func(path string, owner uint32)) {
		t.Helper()
		if err := filepath.WalkDir(filepath.Dir(data), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				do(path, info.Sys().(*syscall.Stat_t).Uid)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	each(func(path string, _ uint32) {
		if err := os.Chown(path, user, user); err != nil {
			t.Fatal(err)
		}
	})
	for _, command := range []string{
		"list", "list --forget", "add --tenant me --user ann A-falcon", "check --upstream " + upstream.URL, "check --verify --upstream " + upstream.URL, "backup " + out + "/backup", "keys export " + out + "/keyring",
		"clock --confirm", "keys rotate", "forget --all --tenant me --user ann --yes", "keys import " + out + "/keyring",
	} {
		t.Run(command, func(t *testing.T) { asRoot(t, each, command, data, key) })
	}
	if err := os.Rename(filepath.Join(data, "data"), filepath.Join(out, "data")); err != nil {
		t.Fatal(err)
	}
	t.Run("restore", func(t *testing.T) { asRoot(t, each, "restore "+out+"/backup", data, key) })
}

func asRoot(t *testing.T, each func(func(path string, owner uint32)), command, data, key string) {
	t.Helper()
	var said bytes.Buffer
	args := append(strings.Fields(command), "--data", data)
	if err := run(t.Context(), args, environment("REMORA_STORAGE_KEY_FILE", key), strings.NewReader(""), &said, &said); err != nil {
		t.Errorf("%v: %s", err, &said)
	}
	each(func(path string, owner uint32) {
		if owner == 0 {
			t.Errorf("%s belongs to root", path)
		}
	})
}
