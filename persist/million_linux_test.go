package persist

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// TestMillionTurns persists REMORA_TURNS turns (default 3,000) of 64 users in a
// process of at most 128 MiB, page cache included, if a control group can be
// made. The queue is full all the time. All turns must be stored at the end.
func TestMillionTurns(t *testing.T) {
	turns := 3000
	if n, err := strconv.Atoi(os.Getenv("REMORA_TURNS")); err == nil {
		turns = n
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	limit, runtimeLimit := int64(128<<20), "88MiB"
	if storagetest.Raced() {
		limit, runtimeLimit = 8*limit, "704MiB"
	}
	group := storagetest.NewGroup(t, "pipeline", limit)
	child := group.Command(exe)
	child.Env = append(os.Environ(), killDir+"="+dir, killDir+"_TURNS="+strconv.Itoa(turns), "GOMEMLIMIT="+runtimeLimit)
	child.Stderr = t.Output()
	var userTurn strings.Builder
	child.Stdout = &userTurn
	began := time.Now()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	most, last := int64(0), time.Now()
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(100 * time.Millisecond):
			rss := storagetest.Resident(child.Process.Pid)
			most = max(most, rss)
			if time.Since(last) > 30*time.Second {
				last = time.Now()
				t.Logf("%s: %d MiB resident", time.Since(began).Round(time.Second), rss>>20)
			}
		}
	}
	took := time.Since(began)
	if err != nil {
		t.Fatalf("child: %v; %d MiB resident at most: %s", err, most>>20, userTurn.String())
	}
	store := openBadger(t, dir)
	defer store.Close()
	found, facts := 0, 0
	for user := range millionUsers {
		for after := ""; ; {
			page, err := store.Scan(t.Context(), userScope(user), storage.Query{After: after})
			if err != nil || page.Damaged > 0 {
				t.Fatalf("%d damaged, %v", page.Damaged, err)
			}
			for _, m := range page.Memories {
				if m.Kind == storage.KindFact {
					facts++
				} else if m.Provenance.Role == storage.RoleUser {
					found++
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	if found != turns {
		t.Errorf("%d of %d turns are stored", found, turns)
	}
	lines := strings.Split(strings.TrimSpace(userTurn.String()), "\n")
	t.Logf("%d turns in %s, %d stored, %d facts; %d MiB resident at most, %s; the process says %s",
		turns, took.Round(time.Second), found, facts, most>>20, group, lines[len(lines)-1])
}
