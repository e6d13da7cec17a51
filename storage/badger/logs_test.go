package badger

import (
	"os"
	"testing"
)

// TestEmptiedLog guards that a log that held records when it was listed, and is
// empty after a kill, is reported like a missing one.
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
