package proxy

import (
	"fmt"
	"testing"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/storage"
)

// What one user was given is never replayed to another who sends the same
// messages.
func TestReplayStaysWithItsUser(t *testing.T) { inEach(t, testReplayStaysWithItsUser) }

func testReplayStaysWithItsUser(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("ann's secret")
	r.post(a.body("user: hi"), identity.HeaderUser, "ann")
	r.recall.set()
	r.sent()
	for _, other := range [][]string{
		{identity.HeaderUser, "bob"}, {identity.HeaderUser, "ann "}, {identity.HeaderUser, "ann", identity.HeaderApp, "x"}, {identity.HeaderUser, "ann", identity.HeaderProject, "x"}, {},
	} {
		for _, body := range []string{a.body("user: hi"), a.body("user: hi", "assistant: fine", "user: and?")} {
			r.post(body, other...)
			got := r.one().body
			if fmt.Sprint(other) == fmt.Sprint([]string{identity.HeaderUser, "ann "}) {
				continue // HTTP has no space there: the same user
			}
			if got != body {
				t.Errorf("%v was given %s", other, got)
			}
		}
	}
}

// A credential that no upstream has accepted leaves nothing in the store.
func TestRefusedKeysLeaveNothing(t *testing.T) {
	r := newRig(t, func(c *Config, _ *Deps) { c.Identity.Loopback = false })
	stored := func() int {
		r.settle()
		r.h.ledger.Flush(t.Context())
		page, err := r.local.AllRecords(t.Context(), storage.BucketLedger, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Records)
	}
	r.answers(func(received) (int, string, string) { return 401, "application/json", `{"error":{}}` })
	r.post(chat("user: hi"), identity.HeaderUser, "ann")
	if n := stored(); n != 0 || len(r.turns()) != 0 {
		t.Errorf("%d entries of a refused key are stored, want 0", n)
	}
	r.answers(replyWith("fine"))
	r.post(chat("user: hi"), identity.HeaderUser, "ann")
	if n := stored(); n != 1 {
		t.Errorf("%d entries of an accepted key are stored, want 1", n)
	}
}

// Ids of turns stand in stores that older builds have written: how they are
// made is fixed.
func TestTurnIDsStay(t *testing.T) {
	ids := ledger.NewTurnIDs([]byte("0123456789abcdef0123456789abcdef"))
	scope := storage.Scope{Tenant: "local", App: "default", Project: "default", User: "u"}
	for range 3 { // the second finds the first one's hash used
		if got, want := ids.ID(scope, "c", ledger.HexHash(ledger.Hash{Hi: 1, Lo: 2})), "2135d683ae10b4089b2718619809e031"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
