package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFollowClock checks that the clock follows its file, keeps the last
// duration while the file can't be read, and fails for a file of no use.
func TestFollowClock(t *testing.T) {
	t.Cleanup(func() { clock.Store(nil) })
	path := filepath.Join(t.TempDir(), "clock")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	differs := func(want time.Duration) {
		t.Helper()
		for _, got := range []time.Time{Clock(), Now().Std()} {
			if d := got.Sub(time.Now().Round(0)) - want; d < -time.Minute || d > time.Minute {
				t.Errorf("the clock is %v, want the machine's and %v", got, want)
			}
		}
	}
	differs(0)
	if err := FollowClock(path); err == nil {
		t.Error("a file that is missing is taken")
	}
	write("yesterday")
	if err := FollowClock(path); err == nil || !strings.Contains(err.Error(), "yesterday") {
		t.Errorf("a file without a duration: %v", err)
	}
	differs(0)
	write("-720h\n")
	if err := FollowClock(path); err != nil {
		t.Fatal(err)
	}
	differs(-720 * time.Hour)
	write("48h")
	differs(48 * time.Hour)
	write("")
	differs(48 * time.Hour)
}
