package persist

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// TestErasureWhileNothingIsStored has a full disk, where nothing can be written
// and everything erased. Turns that wait do not delay an erasure; those of
// other users are stored afterwards, once, with the originals of what was
// redacted.
func TestErasureWhileNothingIsStored(t *testing.T) {
	for _, refused := range []string{"PutRecords", "Put"} {
		synctest.Test(t, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Audit.Enabled = false
			store := newFaulty()
			p := start(t, New(cfg, store, store, &indexed{}, newRedactor(t), nil, nil))
			defer p.stop()
			mustEnqueue(t, p.Pipeline, userTurn("t1", "I'm allergic to peanuts."))
			mustFlush(t, p.Pipeline)
			full := func(on bool) {
				store.mu.Lock()
				defer store.mu.Unlock()
				store.fault = nil
				if on {
					store.fault = func(method string, _ int) (error, bool) {
						if method == refused {
							return fmt.Errorf("%w: no space", storage.ErrUnavailable), false
						}
						return nil, false
					}
				}
			}
			full(true)
			other := userTurn("o1", "My address is ines@example.org, and I live in Graz.")
			other.Scope = userScope(2)
			mustEnqueue(t, p.Pipeline, other, userTurn("t2", "I live in Porto."))
			time.Sleep(time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if w := p.Waiting(); len(w) != 2 || !slices.Contains(w, testScope) || !slices.Contains(w, other.Scope) {
				t.Errorf("%s: waiting are turns of %v", refused, w)
			}
			began := time.Now()
			got, err := p.ForgetUser(ctx, testScope)
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s: it took %v", refused, took)
			}
			if err != nil || got.Memories == 0 || got.Queued+got.Spooled == 0 {
				t.Errorf("%s: %+v, %v", refused, got, err)
			}
			full(false)
			mustFlush(t, p.Pipeline)
			if left := allOf(t, store, testScope); len(left) > 0 {
				t.Errorf("%s: left %v", refused, left)
			}
			page, err := store.Scan(t.Context(), userScope(2), storage.Query{})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(page.Memories, func(m storage.Memory) bool { return m.Provenance.Role == storage.RoleUser })
			if len(page.Memories) != 2 || i < 0 || len(page.Memories[i].Redactions) != 1 {
				t.Errorf("%s: of the other are stored %+v", refused, page.Memories)
			}
			if w := p.Waiting(); len(w) > 0 {
				t.Errorf("%s: at the end there wait turns of %v", refused, w)
			}
			if s := p.Stats(); s.Indexed != 2 || s.Persisted > 3 || s.QueueTurns != 0 {
				t.Errorf("%s: stats %+v", refused, s)
			}
		})
	}
}
