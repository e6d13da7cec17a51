package recall

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage/storagetest"
)

// An index at its limit omits memories every few turns.
func TestOmissionsAreLoggedOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := New(DefaultConfig(), storagetest.Memory(), slog.New(slog.NewTextHandler(&log, nil)), nil)
		defer e.Close()
		for range 100 {
			e.rebuilder.countOmitted(3)
			time.Sleep(time.Minute)
		}
		if got := strings.Count(log.String(), "left out"); got != 2 || !strings.Contains(log.String(), "omitted=3\n") || !strings.Contains(log.String(), "omitted=183\n") {
			t.Errorf("logged %d times:\n%s", got, log.String())
		}
	})
}
