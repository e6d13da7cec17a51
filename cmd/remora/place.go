package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// place is the machine that Remora runs on, as far as defaults depend on it.
type place struct {
	os        string // as runtime.GOOS
	home      string // "" where there is none, as for a user without an entry in a scratch image
	getenv    func(string) string
	container bool
	memory    uint64 // bytes that a control group leaves it; 0 = no limit

	passing func(path string) bool // it lies on a file system that goes away with the container; nil = nothing does
}

func here(getenv func(string) string) place {
	home, err := os.UserHomeDir()
	if err != nil || getenv("HOME") != "" && runtime.GOOS != "windows" {
		home = getenv("HOME")
	}
	p := place{
		os: runtime.GOOS, home: home, getenv: getenv,
		container: inContainer(getenv, os.ReadFile), memory: containerMemory(),
	}
	if p.container {
		p.passing = func(path string) bool { return passing(path, os.ReadFile) }
	}
	return p
}

// dataDir is where memories live by default, or "" where nothing says where the user's data goes.
func (p place) dataDir() string {
	switch {
	case p.getenv("XDG_DATA_HOME") != "":
		return filepath.Join(p.getenv("XDG_DATA_HOME"), "remora")
	case p.os == "windows" && p.getenv("LocalAppData") != "":
		return filepath.Join(p.getenv("LocalAppData"), "remora")
	case p.home == "":
		return ""
	case p.os == "darwin":
		return filepath.Join(p.home, "Library", "Application Support", "remora")
	case p.os == "windows":
		return filepath.Join(p.home, "AppData", "Local", "remora")
	}
	return filepath.Join(p.home, ".local", "share", "remora")
}

// configDir is never inside dataDir: the key that seals the data lies here, and a copy of the one must not carry the other.
func (p place) configDir() string {
	switch {
	case p.getenv("XDG_CONFIG_HOME") != "":
		return filepath.Join(p.getenv("XDG_CONFIG_HOME"), "remora")
	case p.os == "windows" && p.getenv("AppData") != "":
		return filepath.Join(p.getenv("AppData"), "remora")
	case p.home == "":
		return ""
	case p.os == "windows":
		return filepath.Join(p.home, "AppData", "Roaming", "remora")
	}
	return filepath.Join(p.home, ".config", "remora")
}

func (p place) configFile() string {
	if p.configDir() == "" {
		return ""
	}
	return filepath.Join(p.configDir(), "config.json")
}

func (p place) keyFile() string {
	if p.configDir() == "" {
		return ""
	}
	return filepath.Join(p.configDir(), "store.key")
}

// inContainer errs on the side of yes: what hangs on it is that the memory of one key's holder is not opened to the many
// people behind one application's key, and that no key is generated on a disk that goes away.
func inContainer(getenv func(string) string, readFile func(string) ([]byte, error)) bool {
	if getenv("KUBERNETES_SERVICE_HOST") != "" || getenv("container") != "" {
		return true
	}
	for _, marker := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := readFile(marker); !errors.Is(err, os.ErrNotExist) && !ownDisk(readFile) {
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

// ownDisk says that the root file system is a disk of this machine, whole and by itself. A virtual machine booted from
// a disk that was made of a container image carries that image's marker file, but is no container: one has an overlay
// or a part of another's disk for its root. LVM and device-mapper names do not count, since Docker has used them too.
func ownDisk(readFile func(string) ([]byte, error)) bool {
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

// passing says that a path is on the root file system, which in a container is the container's own, or in memory. What can't be told is not.
func passing(path string, readFile func(string) ([]byte, error)) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	mounts, _ := readFile("/proc/self/mountinfo")
	longest, kind := "", ""
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line) // as in ownDisk
		dash := slices.Index(f, "-")
		if len(f) < 10 || dash < 0 || dash+1 == len(f) {
			continue
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(f[4])
		below := at == "/" || path == at || strings.HasPrefix(path, at+"/")
		if below && len(at) >= len(longest) { // of mounts at one place the last one shows
			longest, kind = at, f[dash+1]
		}
	}
	return longest == "/" || kind == "tmpfs" || kind == "ramfs"
}
