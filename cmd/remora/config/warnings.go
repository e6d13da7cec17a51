package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/remora-proxy/remora/storage/badger"
)

// Warnings describes what works but is probably a mistake: variables that set
// nothing and keys that others can read.
func (c *Config) Warnings(environ []string, where Place) []string {
	warnings := append(unknownVariables(environ, c.settings()), unsupportedExporters(environ)...)
	files := badger.KeyFiles(c.Storage)
	for _, file := range files {
		warnings = append(warnings, exposed("key file", file, where)...)
		if inside(file, c.Storage.Dir) {
			warnings = append(warnings, fmt.Sprintf("key file %s is inside the data directory %s: anyone can read a copy of that directory; keep the key elsewhere", file, c.Storage.Dir))
		}
	}
	if c.CAKey != "" {
		warnings = append(warnings, exposed("key of the certificate authority", c.CAKey, where)...)
	}
	return warnings
}

// unsupportedExporters describes OpenTelemetry exporters that are requested but
// don't exist here.
func unsupportedExporters(environ []string) (warnings []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if (name == "OTEL_METRICS_EXPORTER" || name == "OTEL_LOGS_EXPORTER") && value != "" && value != "none" {
			warnings = append(warnings, name+" is set: Remora exports traces only")
		}
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
