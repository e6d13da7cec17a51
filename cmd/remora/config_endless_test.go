//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFilesWithoutEnd: what a variable or a flag names may be no file at all. None is waited for, and none is read without a bound.
func TestFilesWithoutEnd(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mounted := range []string{"/dev/zero", pipe} {
		_, err := loadConfig(overrides{}, environment("REMORA_FORWARD_TOKEN_FILE", mounted), machine())
		if err == nil || !strings.Contains(err.Error(), mounted+" is no regular file") {
			t.Errorf("%s: got %v", mounted, err)
		}
	}
	_, err := loadConfig(overrides{file: "/dev/zero"}, environment(), machine())
	if err == nil || !strings.Contains(err.Error(), "is larger than 1048576 bytes") {
		t.Errorf("a configuration without end: got %v", err)
	}
}
