package badger

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A kill while Badger opens a store may fall between its deleting a log without a record and its making a new one, and one
// before may have left a table that a merge had just made. Neither is damage.
func TestKilledOpening(t *testing.T) {
	for _, inventory := range []bool{true, false} {
		for _, unnamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("inventory %v, unnamed table %v", inventory, unnamed), func(t *testing.T) {
				cfg := testConfig(t)
				s := mustOpen(t, cfg)
				mustPut(t, s, scopeOf("u"), memory("id", "text"))
				mustClose(t, s)
				s = mustOpen(t, cfg)
				to := cfg
				to.Dir = t.TempDir() + "/store"
				if err := os.CopyFS(to.Dir, os.DirFS(cfg.Dir)); err != nil { // what a kill leaves
					t.Fatal(err)
				}
				mustClose(t, s)
				if !inventory { // killed before it was written
					if err := os.Remove(to.Dir + "/data/open"); err != nil {
						t.Fatal(err)
					}
				}
				if unnamed {
					b, err := os.ReadFile(to.Dir + "/data/000001.sst")
					if err != nil {
						t.Fatal(err)
					}
					write(t, to.Dir+"/data/000002.sst", string(b))
				}
				s = New(to, nil)
				if err := s.verify(); err != nil { // the second start
					t.Fatal(err)
				}
				logs, err := filepath.Glob(to.Dir + "/data/*.mem")
				if err != nil || len(logs) != 1 {
					t.Fatalf("logs: %q, %v", logs, err)
				}
				if err := os.Remove(logs[0]); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, to) // the third
				if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil || s.Health().Damaged > 0 {
					t.Errorf("%v, %+v", err, s.Health())
				}
			})
		}
	}
}
