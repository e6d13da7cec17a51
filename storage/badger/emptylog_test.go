package badger

import (
	"os"
	"testing"
)

// TestEmptiedLog: a log that held something when it was noted, and is empty
// where a kill left the store, is told of as one that is gone: what was stored
// last is lost with it.
func TestEmptiedLog(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"cut to nothing": func(path string) error { return os.Truncate(path, 0) },
		"zeros": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, make([]byte, info.Size()), 0o600)
		},
		"whole": func(string) error { return nil },
	} {
		cfg := testConfig(t)
		s := mustOpen(t, cfg)
		mustPut(t, s, scopeOf("u"), memory("id", "text"))
		if err := s.UpdateInventory(); err != nil {
			t.Fatal(err)
		}
		to := leftByKill(t, cfg)
		if err := spoil(onlyLog(t, to)); err != nil {
			t.Fatal(err)
		}
		got := mustOpen(t, to).Health().Damaged
		if want := map[bool]uint64{true: 0, false: 1}[name == "whole"]; got != want {
			t.Errorf("%s: %d damaged, want %d", name, got, want)
		}
	}
}
