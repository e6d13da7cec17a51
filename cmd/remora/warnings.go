package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/remora-proxy/remora/storage/badger"
)

// warnings are what works, and is probably a mistake. serve logs them and check tells them.
func (c config) warnings(environ []string, where place) []string {
	told := append(misspelt(environ, c.settings()), unexported(environ)...)
	files := badger.KeyFiles(c.storage)
	for _, file := range files {
		told = append(told, exposed("key file", file, where)...)
		if inside(file, c.storage.Dir) {
			told = append(told, fmt.Sprintf("key file %s lies inside the data directory %s: a copy of that can be read by anyone; keep the key elsewhere", file, c.storage.Dir))
		}
	}
	if c.caKey != "" {
		told = append(told, exposed("key of the certificate authority", c.caKey, where)...)
	}
	return told
}

// unexported tells of exports that are asked for and that there are none of: whoever waits for them would wait in vain.
func unexported(environ []string) (told []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if (name == "OTEL_METRICS_EXPORTER" || name == "OTEL_LOGS_EXPORTER") && value != "" && value != "none" {
			told = append(told, name+" is set: Remora exports traces only")
		}
	}
	return told
}

// exposed tells of a file that others than its owner can read or write. In a container a secret may well be mounted for a group, and has
// root for its owner.
func exposed(what, file string, where place) []string {
	info, err := os.Stat(file)
	if err != nil || where.os == "windows" { // whose files have no such modes
		return nil
	}
	others, mend := os.FileMode(0o077), "make it 0600"
	if where.container {
		others, mend = 0o037, "make it 0600, or where it is a mounted secret give that a mode of 0440 or 0400 (defaultMode)"
	}
	if info.Mode()&others == 0 {
		return nil
	}
	can := "read"
	if info.Mode()&0o022 != 0 {
		can = "read or replaced"
	}
	return []string{fmt.Sprintf("%s %s may be %s by others than its owner (mode %04o): %s", what, file, can, info.Mode().Perm(), mend)}
}

// inside follows links as far as they lead.
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
