//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is installed, or was written by hand before, is readable by nobody but
// root and the service. A file of another group is left as it is.
func TestReleaseInstallsPrivateSettings(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("only root installs packages")
		}
		t.Skip("only root installs packages")
	}
	dir := t.TempDir()
	bin, etc := filepath.Join(dir, "bin"), filepath.Join(dir, "etc")
	for _, path := range []string{bin, etc} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range map[string]string{
		"systemd-sysusers": "exit 0", "systemctl": "exit 0", "chgrp": `test "$1" = remora; exec /usr/bin/env PATH=/usr/bin:/bin chgrp 65533 "$2"`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.NewReplacer("/etc/remora", etc, "/var/lib/remora", dir).Replace(readRoot(t, "deploy/packages/postinstall.sh"))
	install := func() {
		t.Helper()
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	config, variables := filepath.Join(etc, "config.json"), filepath.Join(etc, "remora.env")
	if err := os.WriteFile(config, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	install()
	if err := os.WriteFile(variables, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{variables: 0o644, config: 0o664} { // whatever the umask; the latter is somebody's choice
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	install()
	for path, want := range map[string]os.FileMode{config: 0o664, variables: 0o640, filepath.Join(etc, "store.key"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: got %v, want %v", filepath.Base(path), info.Mode(), want)
		}
	}
}
