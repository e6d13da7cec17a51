package ledger

import (
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// Each commit makes a segment. A conversation that stays in memory would have as
// many as it had turns.
func TestSegmentsAreCompacted(t *testing.T) {
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	mem := storagetest.Memory()
	l := New(DefaultConfig(), mem, discarding, time.Now)
	s := groupOf(l, scope)
	await(t, s)
	const turns = 2*compactAt + 100
	for i := range turns {
		enter(l, s, i)
		if !l.store.flush(t.Context()) {
			t.Fatal("not written")
		}
	}
	refs, err := l.store.disk.refs(t.Context(), s.key)
	if err != nil || len(refs) > compactAt {
		t.Errorf("%d segments, %v, want at most %d", len(refs), err, compactAt)
	}
	again := groupOf(New(DefaultConfig(), mem, discarding, time.Now), scope)
	if await(t, again); len(again.entries) != turns {
		t.Errorf("%d entries after a restart, want %d", len(again.entries), turns)
	}
}
