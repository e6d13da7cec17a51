package badger

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// residentTables is how much of a store's tables is resident, in KiB, and how many of them are mapped: proc_pid_smaps(5).
func residentTables(t *testing.T, s *Store) (kib, tables int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	of := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if fields := strings.Fields(line); strings.Contains(fields[0], "-") {
			if of = strings.Contains(line, s.dataDir()) && strings.HasSuffix(line, ".sst"); of {
				tables++
			}
		}
		if n := 0; of && strings.HasPrefix(line, "Rss:") {
			if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); err != nil {
				t.Fatal(err)
			}
			kib += n
		}
	}
	return kib, tables
}

func TestReleaseTables(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	text := strings.Repeat("a text of some length ", 100)
	for i := range 300 {
		mustPut(t, s, scopeOf("u"), memory(fmt.Sprint(i), text))
	}
	mustClose(t, s) // writes a table
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := everything(t, s, "u")
	before, tables := residentTables(t, s)
	if tables == 0 || before < 300 {
		t.Fatalf("%d KiB of %d tables are resident after reading all", before, tables)
	}
	if err := s.ReleaseTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, _ := residentTables(t, s); after > before/10 {
		t.Errorf("%d KiB of tables are resident, %d before", after, before)
	}
	if got := everything(t, s, "u"); len(got) != len(want) {
		t.Errorf("%d memories after, %d before", len(got), len(want))
	}
}

// TestReleaseTablesUnderWay: what is let go of while tables come and go is there still.
func TestReleaseTablesUnderWay(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	text := strings.Repeat("a text of some length ", 1000)
	const rounds = 600
	var beside sync.WaitGroup
	done := make(chan struct{})
	beside.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := s.ReleaseTables(t.Context()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range rounds {
		mustPut(t, s, scopeOf("u"), memory(fmt.Sprint(i), text))
	}
	close(done)
	beside.Wait()
	if _, tables := residentTables(t, s); tables == 0 {
		t.Fatal("no table was made")
	}
	for i := range rounds {
		if m, err := s.Memory(t.Context(), scopeOf("u"), fmt.Sprint(i)); err != nil || m.Text != text {
			t.Fatalf("memory %d: %v", i, err)
		}
	}
}
