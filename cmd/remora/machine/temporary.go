package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Temporary makes sure that temporary files can be made. Where they can't, as in
// a container whose root is read-only and has no /tmp, this process and those
// that it starts make them in dir/tmp, which is emptied.
func Temporary(dir string) error {
	if probe, err := os.MkdirTemp("", "remora-"); err == nil {
		return os.Remove(probe)
	}
	own, err := filepath.Abs(filepath.Join(dir, "tmp"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(own); err != nil {
		return fmt.Errorf("empty the directory of temporary files: %w", err)
	}
	if err := os.MkdirAll(own, 0o700); err != nil {
		return fmt.Errorf("make a directory of temporary files: %w", err)
	}
	variable := "TMPDIR"
	if runtime.GOOS == "windows" {
		variable = "TMP"
	}
	return os.Setenv(variable, own)
}
