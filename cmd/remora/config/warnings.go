package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/remora-proxy/remora/storage/badger"
)

// Warnings describes what works but is probably a mistake: variables that set
// nothing, keys that others can read, and a health listener for other machines.
func (c *Config) Warnings(environ []string, where Place) []string {
	warnings := unknownVariables(environ, c.settings())
	if c.Health != "" && !loopback(c.Health) && !where.container {
		warnings = append(warnings, "health.listen can be reached from other machines and asks for no credential: its metrics name models and upstreams; listen on 127.0.0.1, or let only Prometheus reach it")
	}
	files := badger.KeyFiles(c.Storage)
	for _, file := range files {
		warnings = append(warnings, exposed("key file", file, where)...)
		if inside(file, c.Storage.Dir) {
			warnings = append(warnings, fmt.Sprintf("key file %s is inside the data directory %s: anyone can read a copy of that directory; keep the key elsewhere", file, c.Storage.Dir))
		}
	}
	if c.Store.ClockFile != "" {
		warnings = append(warnings, "storage.clockFile is set: what is remembered does not get the machine's dates; it is for tests alone")
	}
	if c.CAKey != "" {
		warnings = append(warnings, exposed("key of the certificate authority", c.CAKey, where)...)
	}
	return warnings
}

// exposed describes a file that others than its owner can read or write. In a
// container a mounted secret belongs to root and may be readable by a group.
func exposed(what, file string, where Place) []string {
	info, err := os.Stat(file)
	if err != nil || where.os == "windows" { // files have no modes there
		return nil
	}
	others, remedy := os.FileMode(0o077), "make it 0600"
	if where.container {
		others, remedy = 0o037, "make it 0600, or mount the secret with mode 0440 or 0400 (defaultMode)"
	}
	if info.Mode()&others == 0 {
		return nil
	}
	access := "read"
	if info.Mode()&0o022 != 0 {
		access = "read or replaced"
	}
	return []string{fmt.Sprintf("%s %s may be %s by others than its owner (mode %04o): %s", what, file, access, info.Mode().Perm(), remedy)}
}

// inside reports whether file is in dir, after following links.
func inside(file, dir string) bool {
	resolve := func(path string) string {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		return path
	}
	rest, err := filepath.Rel(resolve(dir), resolve(file))
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}
