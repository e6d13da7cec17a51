package ledger

import (
	"context"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// segments returns what is stored of the ledger.
func storedSegments(t *testing.T, local storage.Local) []storage.Record {
	t.Helper()
	page, err := local.AllRecords(t.Context(), storage.BucketLedger, "", storage.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	return page.Records
}

// keylessLocal refuses the records of one scope, and with them a whole call, as
// a store does that lacks the scope's key.
type keylessLocal struct {
	storage.Local
	scope storage.Scope
}

func (l keylessLocal) PutRecords(ctx context.Context, records []storage.Record) error {
	for _, r := range records {
		if r.Scope == l.scope {
			return storage.ErrDamaged
		}
	}
	return l.Local.PutRecords(ctx, records)
}

func (l keylessLocal) Records(ctx context.Context, bucket storage.Bucket, scope storage.Scope, after string, limit int) (storage.RecordPage, error) {
	if scope == l.scope {
		return storage.RecordPage{}, storage.ErrDamaged
	}
	return l.Local.Records(ctx, bucket, scope, after, limit)
}

// TestLedgerBesideAMissingKey: a user whose key is missing holds up nobody
// else's ledger.
func TestLedgerBesideAMissingKey(t *testing.T) {
	scopeOf := func(user string) storage.Scope {
		return storage.Scope{Tenant: "t", App: "a", Project: "p", User: user}
	}
	mem := storagetest.Memory()
	st := newStore(keylessLocal{mem, scopeOf("lost")}, discarding, DefaultConfig())
	for _, user := range []string{"lost", "kept"} {
		st.put(groupKey{scope: scopeOf(user)}, Hash{Lo: 1}, &entry{variants: []*variant{{Injection: Injection{Block: fence.Block{Text: "x"}}}}}, 0)
	}
	if !st.flush(t.Context()) {
		t.Error("the store refused")
	}
	if left := storedSegments(t, mem); len(left) != 1 || left[0].Scope != scopeOf("kept") {
		t.Errorf("%d segments, want the other user's one", len(left))
	}
	if n := st.dropped.Load(); n != 1 {
		t.Errorf("%d entries were dropped, want 1", n)
	}
	st.forget(scopeOf("lost"), map[string]struct{}{"m1": {}}) // nor does what it is to forget
	st.put(groupKey{scope: scopeOf("kept")}, Hash{Lo: 2}, &entry{variants: []*variant{{Injection: Injection{Block: fence.Block{Text: "x"}}}}}, 0)
	if !st.flush(t.Context()) || len(st.tasks) > 0 || len(storedSegments(t, mem)) != 2 {
		t.Errorf("%d tasks are left, %d segments", len(st.tasks), len(storedSegments(t, mem)))
	}
}

func TestPendingLedgerIsBounded(t *testing.T) {
	st := newStore(storagetest.Memory(), discarding, DefaultConfig())
	big := &entry{variants: []*variant{{Injection: Injection{Block: fence.Block{Text: strings.Repeat("x", 1<<20)}}}}}
	for i := range 20 {
		st.put(groupKey{scope: storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}}, Hash{Lo: uint64(i)}, big, 0)
	}
	if st.size > maxPending+1<<20 || st.dropped.Load() != 12 {
		t.Errorf("%d bytes wait and %d entries were dropped, want about %d and 12", st.size, st.dropped.Load(), maxPending)
	}
}

// groupOf returns the entries of a group of the scope, loading.
func groupOf(l *Ledger, scope storage.Scope) *Entries {
	s := l.group(groupKey{scope, Hash{Hi: 1}})
	l.load(s)
	return s
}

// await waits until a group is loaded.
func await(t *testing.T, s *Entries) {
	t.Helper()
	if err := s.await(t.Context()); err != nil {
		t.Error(err)
	}
}
