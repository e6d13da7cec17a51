package proxy

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// segments returns what is stored of the ledger.
func segments(t *testing.T, local storage.Local) []storage.Record {
	t.Helper()
	page, err := local.AllRecords(t.Context(), storage.BucketLedger, "", storage.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	return page.Records
}

// plainSegment returns the rows of a stored segment.
func plainSegment(t *testing.T, segment storage.Record) []byte {
	t.Helper()
	rows, err := s2.Decode(nil, segment.Value)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// storedEntries returns the number of entries that are stored.
func storedEntries(t *testing.T, local storage.Local) int {
	t.Helper()
	keys := map[string]bool{}
	for _, s := range segments(t, local) {
		for rows := plainSegment(t, s); len(rows) > 0; {
			size, n := binary.Uvarint(rows[16:])
			keys[string(rows[:16])] = true
			rows = rows[16+n+int(size):]
		}
	}
	return len(keys)
}

// restart is a rig on the memory of r.
func restart(r *rig) *rig {
	return newRig(r.t, func(_ *Config, d *Deps) { d.Local = r.local; d.Now = r.clock })
}

// restart is the same in another dialect.
func (a api) restart(r *rig) *rig {
	return a.rig(r.t, func(_ *Config, d *Deps) { d.Local = r.local; d.Now = r.clock })
}

func TestForgottenStaysForgotten(t *testing.T) {
	r := newRig(t)
	for i := range 3 { // in several segments, of which each holds the line
		r.recall.set("keep", "drop")
		r.post(chat(fmt.Sprintf("user: q%d", i)))
		r.h.ledger.Flush(t.Context())
	}
	q := r.recall.asked()[0]
	r.h.Forget(q.Scope, "m1-drop")
	r.h.ledger.Flush(t.Context())
	for _, s := range segments(t, r.local) {
		if strings.Contains(string(plainSegment(t, s)), "drop") {
			t.Error("a segment still holds the forgotten line")
		}
	}
	again := restart(r)
	for i := range 3 {
		q := fmt.Sprintf("user: q%d", i)
		again.post(chat(q, "assistant: fine", "user: next"))
		want := []string{"user: [keep]", q, "assistant: fine", "user: next"}
		if diff := cmp.Diff(want, roles(t, again.one().body)); diff != "" {
			t.Errorf("after a restart (-want +got):\n%s", diff)
		}
	}
}

// What a refused try was given is stored when its retry, or the turn after it,
// is accepted.
func TestStoredThoughTheFirstTryFailed(t *testing.T) {
	for name, retried := range map[string]bool{"a retry": true, "the turn after it": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.post(chat("user: hello")) // the scope has been accepted
			r.answers(func(received) (int, string, string) {
				return 503, "application/json", `{"error":{"message":"overloaded"}}`
			})
			r.recall.set("fact")
			r.post(chat("user: q1"))
			r.answers(func(received) (int, string, string) { return 200, "application/json", chatAnswer("", "fine") })
			r.recall.set()
			said := []string{"user: q1"}
			if !retried {
				said = append(said, "assistant: it failed", "user: again")
			}
			r.post(chat(said...))
			r.h.ledger.Flush(t.Context())
			again := restart(r)
			again.post(chat(append(said, "assistant: fine", "user: next")...))
			want := append(append([]string{"user: [fact]"}, said...), "assistant: fine", "user: next")
			if diff := cmp.Diff(want, roles(t, again.one().body)); diff != "" {
				t.Errorf("after a restart (-want +got):\n%s", diff)
			}
		})
	}
}

// TestForgetWithVerySegmentedLedger: what is forgotten goes however many
// segments there are, and others' entries are written.
func TestForgetWithVerySegmentedLedger(t *testing.T) {
	r := newRig(t)
	r.recall.set("fact")
	r.post(chat("user: q0"))
	if !r.h.ledger.Flush(t.Context()) {
		t.Fatal("not written")
	}
	stored := segments(t, r.local)
	if len(stored) != 1 {
		t.Fatalf("%d segments", len(stored))
	}
	more := make([]storage.Record, storage.MaxRecords)
	for i := range more {
		more[i] = stored[0]
		more[i].Key = fmt.Sprintf("%016x", i)
	}
	for batch := range slices.Chunk(more, 100) {
		if err := r.local.PutRecords(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	scope := stored[0].Scope
	r.h.ledger.Erase(scope)
	r.post(chat("user: q1"), identity.HeaderUser, "other")
	if !r.h.ledger.Flush(t.Context()) {
		t.Error("the store refused")
	}
	left := segments(t, r.local)
	if len(left) != 1 || left[0].Scope == scope {
		t.Errorf("%d segments are left, want another user's one", len(left))
	}
}

func TestLedgerOutlivesAnOutage(t *testing.T) {
	r := newRig(t)
	mem := r.local.(*storagetest.Mem)
	r.recall.set("fact")
	scope := storage.Scope{Tenant: "local", App: identity.DefaultPart, Project: identity.DefaultPart, User: identity.KeyHolderUser}
	resume, err := r.h.PauseWrites(t.Context(), scope) // or the handler's own writer may be quicker than the outage
	if err != nil {
		t.Fatal(err)
	}
	r.post(chat("user: q0"))
	mem.Fail(true)
	resume()
	if r.h.ledger.Flush(t.Context()) {
		t.Fatal("a failing store took the ledger")
	}
	// What is in memory goes on; nothing waits.
	if got := r.post(chat("user: q0", "assistant: fine", "user: next")); got.status != StatusReplayed || got.memories != "1" {
		t.Errorf("status %s with %s memories while the store fails, want replayed with 1", got.status, got.memories)
	}
	if got := r.post(chat("user: q0", "assistant: fine", "user: next"), identity.HeaderUser, "other"); got.code != 200 || got.status != StatusUnavailable {
		t.Errorf("a conversation not in memory: code %d, status %s, want 200, unavailable", got.code, got.status)
	}
	mem.Fail(false)
	r.h.ledger.Flush(t.Context())
	again := restart(r)
	if got := again.post(chat("user: q0", "assistant: fine", "user: next")); got.memories != "1" {
		t.Errorf("status %s with %s memories after the outage, want 1", got.status, got.memories)
	}
}

// What a killed process has left in its journal is erased and forgotten too,
// although no request has come since.
func TestErasedFromTheJournal(t *testing.T) {
	for name, erase := range map[string]func(h *Handler, scope storage.Scope){
		"erased":    func(h *Handler, scope storage.Scope) { h.Drop(scope) },
		"forgotten": func(h *Handler, scope storage.Scope) { h.Forget(scope, "m0-drop") },
		"neither":   func(*Handler, storage.Scope) {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRig(t, func(_ *Config, d *Deps) { d.Journal = dir })
			scope := storage.Scope{Tenant: "local", App: identity.DefaultPart, Project: identity.DefaultPart, User: identity.KeyHolderUser}
			if _, err := r.h.PauseWrites(t.Context(), scope); err != nil { // as if it had been killed
				t.Fatal(err)
			}
			r.recall.set("drop")
			r.post(chat("user: q"))
			again := func() *rig {
				return newRig(t, func(_ *Config, d *Deps) { d.Local, d.Journal, d.Now = r.local, dir, r.clock })
			}
			erase(again().h, scope)
			last := again()
			last.post(chat("user: q", "assistant: fine", "user: next"))
			want := []string{"user: q", "assistant: fine", "user: next"}
			if name == "neither" {
				want = append([]string{"user: [drop]"}, want...)
			}
			if diff := cmp.Diff(want, roles(t, last.one().body)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is forgotten while the ledger can't be read does not come back when it
// can.
func TestForgottenDuringAnOutage(t *testing.T) {
	r := newRig(t)
	r.recall.set("drop")
	r.post(chat("user: q"))
	r.h.ledger.Flush(t.Context())
	scope := r.recall.asked()[0].Scope
	again := restart(r)
	mem := r.local.(*storagetest.Mem)
	mem.Fail(true)
	again.h.Forget(scope, "m0-drop")
	mem.Fail(false)
	again.h.ledger.Flush(t.Context())
	again.post(chat("user: q", "assistant: fine", "user: next"))
	want := []string{"user: q", "assistant: fine", "user: next"}
	if diff := cmp.Diff(want, roles(t, again.one().body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
