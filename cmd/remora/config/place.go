package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/remora-proxy/remora/cmd/remora/machine"
)

// Place describes the machine that Remora runs on, as far as defaults depend on
// it. The zero Place has no home.
type Place struct {
	os        string // as runtime.GOOS
	home      string // "" = none, as for a user without an entry in a scratch image
	getenv    func(string) string
	container bool
	memory    uint64 // limit of the control group, in bytes; 0 = none

	// ephemeral reports whether a path is on a file system that is lost with
	// the container; nil = none is.
	ephemeral func(path string) bool
}

// Here examines this machine.
func Here(getenv func(string) string) Place {
	home, err := os.UserHomeDir()
	if err != nil || getenv("HOME") != "" && runtime.GOOS != "windows" {
		home = getenv("HOME")
	}
	p := Place{
		os: runtime.GOOS, home: home, getenv: getenv,
		container: inContainer(getenv, os.ReadFile), memory: containerMemory(),
	}
	if p.container {
		p.ephemeral = func(path string) bool { return ephemeral(path, os.ReadFile) }
	}
	return p
}

func (p Place) env(name string) string {
	if p.getenv == nil {
		return ""
	}
	return p.getenv(name)
}

// dataDir returns the default directory of memories, or "" where no directory
// for user data is known.
func (p Place) dataDir() string {
	switch {
	case p.env("XDG_DATA_HOME") != "":
		return filepath.Join(p.env("XDG_DATA_HOME"), "remora")
	case p.os == "windows" && p.env("LocalAppData") != "":
		return filepath.Join(p.env("LocalAppData"), "remora")
	case p.home == "":
		return ""
	case p.os == "darwin":
		return filepath.Join(p.home, "Library", "Application Support", "remora")
	case p.os == "windows":
		return filepath.Join(p.home, "AppData", "Local", "remora")
	}
	return filepath.Join(p.home, ".local", "share", "remora")
}

// configDir returns the directory of the configuration and the store's key, or
// "". It is never inside dataDir: a copy of the data must not include the key
// that seals it.
func (p Place) configDir() string {
	switch {
	case p.env("XDG_CONFIG_HOME") != "":
		return filepath.Join(p.env("XDG_CONFIG_HOME"), "remora")
	case p.os == "windows" && p.env("AppData") != "":
		return filepath.Join(p.env("AppData"), "remora")
	case p.home == "":
		return ""
	case p.os == "windows":
		return filepath.Join(p.home, "AppData", "Roaming", "remora")
	}
	return filepath.Join(p.home, ".config", "remora")
}

func (p Place) configFile() string {
	if p.configDir() == "" {
		return ""
	}
	return filepath.Join(p.configDir(), "config.json")
}

func (p Place) keyFile() string {
	if p.configDir() == "" {
		return ""
	}
	return filepath.Join(p.configDir(), "store.key")
}

// inContainer reports whether this is a container. When in doubt it is:
// otherwise one key holder's memory might be open to the many users of an
// application, or a key be generated on a disk that is lost.
func inContainer(getenv func(string) string, readFile func(string) ([]byte, error)) bool {
	if getenv("KUBERNETES_SERVICE_HOST") != "" || getenv("container") != "" {
		return true
	}
	for _, marker := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := readFile(marker); !errors.Is(err, os.ErrNotExist) && !rootIsDisk(readFile) {
			return true
		}
	}
	cgroup, _ := readFile("/proc/1/cgroup")
	for _, runtime := range []string{"docker", "kubepods", "containerd", "libpod", "lxc"} {
		if strings.Contains(string(cgroup), runtime) {
			return true
		}
	}
	return false
}

// rootIsDisk reports whether the root file system is a whole disk of this
// machine. A virtual machine whose disk was made from a container image has
// that image's marker file but is not a container, whose root is an overlay or
// part of a disk. LVM and device-mapper names do not count, since Docker has
// used them as well.
func rootIsDisk(readFile func(string) ([]byte, error)) bool {
	mounts, _ := readFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line) // proc(5): id parent major:minor root mount-point options [tags] - type source options
		if len(f) < 10 || f[4] != "/" {
			continue
		}
		source := f[len(f)-2]
		disk := false
		for _, kind := range []string{"/dev/vd", "/dev/sd", "/dev/nvme", "/dev/xvd"} {
			disk = disk || strings.HasPrefix(source, kind)
		}
		return disk && f[3] == "/"
	}
	return false
}

// ephemeral reports whether a path is on the root file system, which in a
// container is the container's own, or in memory. It is false where the mounts
// can't be read.
func ephemeral(path string, readFile func(string) ([]byte, error)) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	mounts, _ := readFile("/proc/self/mountinfo")
	m, found := machine.FindMount(path, string(mounts))
	return found && (m.Point == "/" || m.InMemory())
}
