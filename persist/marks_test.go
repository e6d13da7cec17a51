package persist

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// markSizes records how many marks are deleted at once.
type markSizes struct {
	*faulty
	most, all atomic.Int64
}

func (s *markSizes) DeleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	n := int64(0)
	for _, ref := range refs {
		if strings.HasPrefix(ref.Key, markPrefix) {
			n++
		}
	}
	s.most.Store(max(s.most.Load(), n))
	s.all.Add(n)
	return s.faulty.DeleteRecords(ctx, refs)
}

// TestMarksAreSweptInSteps checks that marks that nothing needs any more are
// deleted soon, but not all at once.
func TestMarksAreSweptInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const conversations = 3*marksPerSweep + 1
		store := &markSizes{faulty: newFaulty()}
		p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
		for i := range conversations {
			turn := userTurn(fmt.Sprint("t", i), "I live in Porto.")
			turn.Scope, turn.Conversation = userScope(i%10), fmt.Sprint("c", i)
			mustEnqueue(t, p.Pipeline, turn)
			mustFlush(t, p.Pipeline)
		}
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * idleMark)
		if n := store.all.Load(); n != 0 {
			t.Errorf("%d marks are gone before the next round", n)
		}
		p.settle(t, userTurn("last", "I live in Graz."))
		time.Sleep(markSweep)
		synctest.Wait()
		if all, most := store.all.Load(), store.most.Load(); all != conversations || most != marksPerSweep {
			t.Errorf("%d of %d marks are gone, up to %d at once, want all, %d at once", all, conversations, most, marksPerSweep)
		}
		p.stop()
	})
}
