package persist

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/remora-proxy/remora/storage"
)

// TestQuarantineIsBounded checks that poison turns beyond MaxQuarantined are
// dropped and counted, also in the next run, and that other turns do not wait
// for them.
func TestQuarantineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		store.setFault(func(method string, _ int) (error, bool) {
			if method == "Put" {
				for _, w := range store.lastPut() {
					if strings.HasPrefix(w.Turn, "bad") {
						return fmt.Errorf("no: %w", storage.ErrInvalid), false
					}
				}
			}
			return nil, false
		})
		cfg := DefaultConfig()
		cfg.MaxQuarantined = 2
		for run := range 2 {
			p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
			for i := range 3 {
				mustEnqueue(t, p.Pipeline, turnOf(testScope, fmt.Sprint("bad", run, i), "one", ""), turnOf(testScope, fmt.Sprint("good", run, i), "two", ""))
			}
			mustFlush(t, p.Pipeline)
			kept, dropped := uint64(2), uint64(1)
			if run > 0 {
				kept, dropped = 0, 3
			}
			s := p.Stats()
			list, err := p.Quarantined(t.Context())
			if err != nil || len(list) != 2 || s.Quarantined != kept || s.Dropped[DropPoison] != dropped || s.Indexed != 3 || s.QueueTurns != 0 {
				t.Errorf("run %d: %d are set aside, %v; stats %+v", run, len(list), err, s)
			}
			p.stop()
		}
		if left := store.spooledRecords(t); left != 2 {
			t.Errorf("%d turns are in the spool, want the two set aside", left)
		}
	})
}
