//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFilesWithoutEnd checks that a pipe or device that a variable or flag
// names is neither waited for nor read without a limit.
func TestFilesWithoutEnd(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mounted := range []string{"/dev/zero", pipe} {
		_, err := Load(Overrides{}, environment("REMORA_FORWARD_TOKEN_FILE", mounted), testPlace())
		if err == nil || !strings.Contains(err.Error(), mounted+" is not a regular file") {
			t.Errorf("%s: got %v", mounted, err)
		}
	}
	_, err := Load(Overrides{File: "/dev/zero"}, environment(), testPlace())
	if err == nil || !strings.Contains(err.Error(), "is larger than 1048576 bytes") {
		t.Errorf("an endless configuration: got %v", err)
	}
}
