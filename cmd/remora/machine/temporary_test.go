package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Temporary files are made in the data directory only where the usual place
// takes none.
func TestTemporary(t *testing.T) {
	variable := "TMPDIR"
	if runtime.GOOS == "windows" {
		variable = "TMP"
	}
	data, usual := t.TempDir(), t.TempDir()
	own := filepath.Join(data, "tmp")
	t.Setenv(variable, usual)
	if err := Temporary(data); err != nil || os.Getenv(variable) != usual {
		t.Errorf("in a usual place: %v, %s", err, os.Getenv(variable))
	}
	if left, err := os.ReadDir(usual); err != nil || len(left) > 0 {
		t.Errorf("left there: %v, %v", left, err)
	}
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(variable, filepath.Join(usual, "none"))
	if err := Temporary(data); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(own); err != nil || len(files) > 0 {
		t.Errorf("from the run before: %v, %v", files, err)
	}
	if got := os.Getenv(variable); got != own {
		t.Errorf("they are made in %s, want %s", got, own)
	}
	if err := Temporary(usual); err != nil || os.Getenv(variable) != own {
		t.Errorf("there none can be made: %v, %s", err, os.Getenv(variable))
	}
	if info, err := os.Stat(own); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
