package persist

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// slowScan takes a second to read a scope.
type slowScan struct{ *faulty }

func (s slowScan) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	time.Sleep(time.Second)
	return s.faulty.Scan(ctx, scope, q)
}

// TestErasureDuringRecovery checks that the audits of many users that were due
// at a crash are resumed step by step, so that an erasure need not wait for all
// of them.
func TestErasureDuringRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users = 40
		store := newFaulty()
		for i := range users {
			turn := turnAt(fmt.Sprint("t", i), "I live in Porto.", "Nice. Dinner is at eight with the guests.", time.Now())
			turn.Scope = userScope(i)
			if err := store.Put(t.Context(), []storage.Write{{Scope: turn.Scope, Turn: turn.ID, Memories: episodesOf(turn, century, nil, storage.MaxWrite)}}); err != nil {
				t.Fatal(err)
			}
			value, err := encodeMark("c1", 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketSpool, Scope: turn.Scope, Key: fmt.Sprintf("%s%016x-c1", markPrefix, i), Value: value}}); err != nil {
				t.Fatal(err)
			}
		}
		p := start(t, New(DefaultConfig(), slowScan{store}, store, nil, newRedactor(t), nil, nil))
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := p.ForgetUser(ctx, userScope(users-1)); err != nil {
			t.Errorf("erasure: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for i := range users {
			want := []string{`"I live in Porto."`}
			if i == users-1 {
				want = nil
			}
			if got := current(factsOf(t, store, userScope(i))); !cmp.Equal(got, want) {
				t.Errorf("user %d: %v", i, got)
			}
		}
		p.stop()
	})
}
