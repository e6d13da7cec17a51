package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/storage"
)

// Different credentials, users, apps or projects never share a scope or a turn id, however the ids are crafted.
func TestScopesNeverCollide(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	cfg := DefaultIdentityConfig()
	id := newIdentity(cfg)
	rng := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "b", "\x00", "/", "|", ":", "key:", "name:", "local", "default", "sha256:", "\u200b", " ", "é"}
	word := func() string {
		var b strings.Builder
		for range 1 + rng.IntN(4) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		return strings.TrimSpace(b.String())
	}
	type who struct{ key, user, app, project string }
	scopes, turns := map[storage.Scope]who{}, map[string]who{}
	ids := ledger.NewTurnIDs(secret)
	for range 20000 {
		w := who{"sk-real-" + word(), word(), word(), word()}
		if w.user == "" || w.app == "" || w.project == "" {
			continue
		}
		head := map[string][]string{
			"Authorization": {"Bearer " + w.key}, headerUser: {w.user}, headerApp: {w.app}, headerProject: {w.project},
		}
		s, ok := id.scope(secret, head, &dialect.Request{}, &client{})
		if !ok {
			t.Fatalf("no scope for %+v", w)
		}
		w.key = strings.TrimSpace(w.key)
		turn := ids.ID(s, "c", ledger.HexHash(ledger.Hash{}))
		for _, seen := range []struct {
			other who
			found bool
		}{{scopes[s], scopes[s] != who{}}, {turns[turn], turns[turn] != who{}}} {
			if seen.found && seen.other != w {
				t.Fatalf("%+v and %+v collide", seen.other, w)
			}
		}
		scopes[s], turns[turn] = w, w
	}
}

// What one user was given is never replayed to another who sends the same messages.
func TestReplayStaysWithItsUser(t *testing.T) { inEach(t, testReplayStaysWithItsUser) }

func testReplayStaysWithItsUser(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("ann's secret")
	r.post(a.body("user: hi"), headerUser, "ann")
	r.recall.set()
	r.sent()
	for _, other := range [][]string{
		{headerUser, "bob"}, {headerUser, "ann "}, {headerUser, "ann", headerApp, "x"}, {headerUser, "ann", headerProject, "x"}, {},
	} {
		for _, body := range []string{a.body("user: hi"), a.body("user: hi", "assistant: fine", "user: and?")} {
			r.post(body, other...)
			got := r.one().body
			if fmt.Sprint(other) == fmt.Sprint([]string{headerUser, "ann "}) {
				continue // the space is no part of the id: the same user
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
	r.post(chat("user: hi"), headerUser, "ann")
	if n := stored(); n != 0 || len(r.turns()) != 0 {
		t.Errorf("%d entries of a refused key are stored, want 0", n)
	}
	r.answers(replyWith("fine"))
	r.post(chat("user: hi"), headerUser, "ann")
	if n := stored(); n != 1 {
		t.Errorf("%d entries of an accepted key are stored, want 1", n)
	}
}

// Ids of turns stand in stores that older builds have written: how they are made is fixed.
func TestTurnIDsStay(t *testing.T) {
	ids := ledger.NewTurnIDs([]byte("0123456789abcdef0123456789abcdef"))
	scope := storage.Scope{Tenant: "local", App: "default", Project: "default", User: "u"}
	for range 3 { // the second finds the first one's hash used
		if got, want := ids.ID(scope, "c", ledger.HexHash(ledger.Hash{Hi: 1, Lo: 2})), "2135d683ae10b4089b2718619809e031"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
