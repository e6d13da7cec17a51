package badger

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Modes of the test binary as a process that a test kills: see TestMain.
const (
	crashDir     = "REMORA_TEST_CRASH_DIR"
	crashRotates = "REMORA_TEST_CRASH_ROTATES"
)

// contextOfProcess is for processes that only end when they are killed.
func contextOfProcess() context.Context { return context.Background() }

// killAfter starts cmd, waits for it to print the line and kills it some
// milliseconds later, later in each round.
func killAfter(t *testing.T, cmd *exec.Cmd, line string, round int) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	seen := false
	for !seen && lines.Scan() {
		seen = lines.Text() == line
	}
	time.Sleep(time.Duration(round) * 1700 * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
		t.Errorf("round %d: %s", round, lines.Text())
	}
	_ = cmd.Wait() // it was killed
	if !seen {
		t.Fatalf("round %d: ended before %q", round, line)
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		work := writeUntilKilled
		if os.Getenv(crashRotates) != "" {
			work = rotateUntilKilled
		}
		if err := work(dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func crashConfig(dir string) Config {
	cfg := DefaultConfig()
	cfg.Dir, cfg.KeyFile = dir+"/store", dir+"/key"
	return cfg
}

func crashTurn(round, n int) storage.Write {
	turn := fmt.Sprintf("turn-%d-%d", round, n)
	w := storage.Write{Scope: scopeOf(fmt.Sprint("user", n%3)), Turn: turn}
	for i := range 2 {
		w.Memories = append(w.Memories, memory(storage.TurnMemoryID(turn, i), turn))
	}
	return w
}

func crashRecord(round, n int) storage.Record {
	key := fmt.Sprintf("record-%d-%d", round, n)
	return storage.Record{Bucket: storage.BucketSpool, Scope: scopeOf(fmt.Sprint("user", n%3)), Key: key, Value: make([]byte, n*50_000%400_000)}
}

// writeUntilKilled prints the number of each turn once it is acknowledged.
func writeUntilKilled(dir string) error {
	ctx := contextOfProcess()
	s := New(crashConfig(dir), nil)
	if err := s.Open(ctx); err != nil {
		return err
	}
	var round int
	fmt.Sscan(os.Getenv("REMORA_TEST_CRASH_ROUND"), &round)
	for n := 0; ; n++ {
		if err := s.Put(ctx, []storage.Write{crashTurn(round, n)}); err != nil {
			return err
		}
		if err := s.PutRecords(ctx, []storage.Record{crashRecord(round, n)}); err != nil {
			return err
		}
		volatile := crashRecord(round, n) // survives a crash of the process
		volatile.Bucket = storage.BucketLedger
		if err := s.PutRecords(ctx, []storage.Record{volatile}); err != nil {
			return err
		}
		fmt.Println("acknowledged", n)
	}
}

// TestKilled guards that what was acknowledged before a kill -9 is there
// afterwards, whole and once.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes")
	}
	dir := t.TempDir()
	acknowledged := map[int]int{} // per round: the last number
	for round := range 5 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir, fmt.Sprint("REMORA_TEST_CRASH_ROUND=", round))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last := -1
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			text, ok := strings.CutPrefix(lines.Text(), "acknowledged ")
			if !ok {
				t.Errorf("round %d: %s", round, lines.Text())
				continue
			}
			fmt.Sscan(text, &last)
			if last == 7+9*round { // then reads on until the kill takes effect
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		if last < 7+9*round {
			t.Fatalf("round %d: ended after %d", round, last)
		}
		acknowledged[round] = last

		s := mustOpen(t, crashConfig(dir))
		found := map[string]int{}
		for u := range 3 {
			page, err := s.Scan(t.Context(), scopeOf(fmt.Sprint("user", u)), storage.Query{})
			if err != nil || page.Damaged != 0 || page.Next != "" {
				t.Fatalf("Scan: %d damaged, next %q, %v", page.Damaged, page.Next, err)
			}
			if v, err := storage.Verify(t.Context(), s, scopeOf(fmt.Sprint("user", u))); err != nil || !v.Whole() || v.Memories != len(page.Memories) {
				t.Errorf("Verify: got %+v, %v, want all %d", v, err, len(page.Memories))
			}
			for _, m := range page.Memories {
				found[m.Text]++ // which is the turn's id
			}
		}
		records := map[storage.Bucket]map[string]int{storage.BucketSpool: {}, storage.BucketLedger: {}}
		for bucket, sizes := range records {
			for after := ""; ; {
				page, err := s.AllRecords(t.Context(), bucket, after, 0)
				if err != nil || page.Damaged != 0 {
					t.Fatalf("AllRecords: %d damaged, %v", page.Damaged, err)
				}
				for _, r := range page.Records {
					sizes[r.Key] = len(r.Value) + 1
				}
				if after = page.Next; after == "" {
					break
				}
			}
		}
		for turn, n := range found {
			if n != 2 {
				t.Errorf("%s has %d passages, want 2: a write was applied partially", turn, n)
			}
		}
		for r, last := range acknowledged {
			for n := range last + 1 {
				if w := crashTurn(r, n); found[w.Turn] != 2 {
					t.Errorf("%s was acknowledged and lost", w.Turn)
				}
				for bucket, sizes := range records {
					if want := crashRecord(r, n); sizes[want.Key] != len(want.Value)+1 {
						t.Errorf("%s of %s was acknowledged and lost", want.Key, bucket)
					}
				}
			}
		}
		mustClose(t, s)
	}
}

// TestOpensOverEmptyFiles guards that a store opens over an empty file, which a
// kill between creating and filling it leaves, and over which Badger fails
// once.
func TestOpensOverEmptyFiles(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	if err := s.PutRecords(t.Context(), []storage.Record{{
		Bucket: storage.BucketSpool, Scope: scopeOf("u"), Key: "k", Value: []byte("v"),
	}}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	for _, name := range []string{"00090.mem", "00091.mem"} {
		write(t, filepath.Join(cfg.Dir, "data", name), "")
	}
	s = mustOpen(t, cfg)
	defer mustClose(t, s)
	page, err := s.AllRecords(t.Context(), storage.BucketSpool, "", 10)
	if err != nil || len(page.Records) != 1 {
		t.Errorf("%d records and %v after opening, want 1", len(page.Records), err)
	}
}
