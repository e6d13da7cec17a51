package badger

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// TestCompactionThatCannotCreateTables guards against the loss of what a
// compaction merges: see badgerLog.Debugf.
func TestCompactionThatCannotCreateTables(t *testing.T) {
	fatal := ""
	l := badgerLog{log: slog.New(slog.DiscardHandler), dir: t.TempDir() + "/gone", fatal: func(reason string) {
		fatal = reason
		panic("ends here")
	}}
	func() {
		defer func() { _ = recover() }()
		l.Debugf(compactionDone + ": %v")
	}()
	if !strings.Contains(fatal, "no table can be created") {
		t.Errorf("fatal reason: %q", fatal)
	}
	l.dir = t.TempDir()
	l.Debugf(compactionDone + ": %v") // returns
	if left, err := os.ReadDir(l.dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestCompactionsAreLogged fails if an update of Badger removes the log line by
// which compactions are noticed.
func TestCompactionsAreLogged(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/dgraph-io/badger/v4").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := mustRead(t, strings.TrimSpace(string(out))+"/levels.go")
	if !strings.Contains(string(source), fmt.Sprintf("Debugf(%q", compactionDone+": %v")) {
		t.Error("Badger's subcompact does not log its discard stats any more: find another place, or check whether the loss is fixed")
	}
}

// TestScrub guards that a flipped bit in a table is found.
func TestScrub(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	for i := range 50 {
		mustPut(t, s, scopeOf("u"), memory(fmt.Sprint("id", i), strings.Repeat("text ", 200)))
	}
	mustClose(t, s)
	if damaged, err := s.Scrub(t.Context()); err != nil || len(damaged) > 0 {
		t.Fatalf("whole store: %v, %v", damaged, err)
	}
	path := cfg.Dir + "/data/000001.sst"
	b := mustRead(t, path)
	b[len(b)/3] ^= 1
	write(t, path, string(b))
	if err := os.WriteFile(cfg.Dir+"/data/000099.sst", make([]byte, 5000), 0o600); err != nil { // as one that is being made
		t.Fatal(err)
	}
	if damaged, err := s.Scrub(t.Context()); err != nil || len(damaged) != 1 || s.Health().Damaged != 1 {
		t.Errorf("damaged store: %v, %v, %+v", damaged, err, s.Health())
	}
}

// TestVerify guards that damage is noticed before Badger deletes or truncates
// what is damaged.
func TestVerify(t *testing.T) {
	crashed := func(t *testing.T) Config {
		cfg := testConfig(t)
		s := mustOpen(t, cfg)
		mustPut(t, s, scopeOf("u"), memory("id1", "text"))
		mustClose(t, s)
		s = mustOpen(t, cfg)
		mustPut(t, s, scopeOf("u"), memory("id2", "text"))
		if err := s.UpdateInventory(); err != nil {
			t.Fatal(err)
		}
		to := leftByKill(t, cfg)
		mustClose(t, s)
		return to
	}
	for name, test := range map[string]struct {
		damage  func(dir string) error
		refused bool
		counted uint64
	}{
		"nothing":            {func(string) error { return nil }, false, 0},
		"log is gone":        {func(dir string) error { return os.Remove(dir + "/00001.mem") }, false, 1},
		"log is cut":         {func(dir string) error { return os.Truncate(dir+"/00001.mem", 60) }, false, 1},
		"manifest is gone":   {func(dir string) error { return os.Remove(dir + "/MANIFEST") }, true, 0},
		"manifest is short":  {func(dir string) error { return os.Truncate(dir+"/MANIFEST", 16) }, true, 0},
		"table is gone":      {func(dir string) error { return os.Remove(dir + "/000001.sst") }, true, 0},
		"registry is broken": {func(dir string) error { return os.Truncate(dir+"/KEYREGISTRY", 3) }, false, 0},
		"log's head":         {func(dir string) error { return flip(dir+"/00001.mem", 7) }, false, 0},
		"value log's head":   {func(dir string) error { return flip(dir+"/000001.vlog", 0) }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := crashed(t)
			if err := test.damage(cfg.Dir + "/data"); err != nil {
				t.Fatal(err)
			}
			s := New(cfg, nil)
			err := s.Open(t.Context())
			defer mustClose(t, s)
			h := s.Health()
			if (err != nil) != test.refused || (h.DamagedOpens > 0) != test.refused || h.Damaged != test.counted {
				t.Errorf("got %v, %+v", err, h)
			}
			if !test.refused && test.counted == 0 {
				for _, id := range []string{"id1", "id2"} {
					if _, err := s.Memory(t.Context(), scopeOf("u"), id); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				}
			}
			if test.refused { // and the keys outlive setting it aside
				if _, err := s.SetAside(storage.TimeOf(now().Std())); err != nil {
					t.Fatal(err)
				}
				if err := s.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := ListSetAside(cfg.Dir); len(got) != 1 {
					t.Errorf("set aside: %v", got)
				}
			}
		})
	}
}

func flip(path string, at int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[at] ^= 1
	return os.WriteFile(path, b, 0o600)
}
