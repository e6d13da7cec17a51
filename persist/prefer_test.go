package persist

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// asBefore compares memories but for what every write sets.
func asBefore(t *testing.T, what string, want, got storage.Memory) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(storage.Memory{}, "Version", "UpdatedAt"), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (p running) prefer(t *testing.T, id string) []storage.Memory {
	t.Helper()
	changed, err := p.Prefer(t.Context(), testScope, id, Cause{By: "ada", Why: "I moved back"})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // revisions are told apart by their time
	return changed
}

func TestPrefer(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		p.settle(t, userTurn("t1", "I live in Porto."))
		older := factWith(t, store, "Porto")
		time.Sleep(time.Hour)
		p.settle(t, userTurn("t2", "I live in Graz."))
		newer := factWith(t, store, "Graz")
		wasOlder, wasNewer := stored(t, store, older), stored(t, store, newer)
		time.Sleep(time.Hour)
		x.taken()

		now := storage.TimeOf(time.Now())
		changed := p.prefer(t, older)
		if len(changed) != 2 || changed[0].ID != older || changed[1].ID != newer {
			t.Fatalf("changed %+v", changed)
		}
		if m := stored(t, store, older); m.SupersededBy != "" || m.ValidTo != 0 || m.ExpiresAt <= wasOlder.ExpiresAt || !x.has(older) {
			t.Errorf("the older one does not hold: %+v", m)
		}
		if m := stored(t, store, newer); m.SupersededBy != older || m.ValidTo != now || x.has(newer) {
			t.Errorf("the newer one holds: %+v", m)
		}
		wantTaken(t, "preferred", x, newer)
		wantFacts(t, "preferred", store, "I live in Porto.")
		if diff := cmp.Diff([]string{"I live in Graz."}, outdatedIn(t, store)); diff != "" {
			t.Errorf("outdated passages (-want +got):\n%s", diff)
		}
		last, err := p.Revisions(t.Context(), testScope, newer)
		if err != nil || len(last) != 1 || last[0].Op != OpPrefer || last[0].By != "ada" || last[0].Why != "I moved back" {
			t.Errorf("revisions %+v, %v", last, err)
		}

		// What was said before, and is audited late, changes nothing; the audit of
		// the same turn does not either.
		early := given("I live in Vienna.")
		early.EventTime = now - 1
		if s := p.remember(t, early)[0]; s.Superseded {
			t.Errorf("said before: %+v", s)
		}
		p.settle(t, userTurn("t2", "I live in Graz."))
		wantFacts(t, "said before", store, "I live in Porto.")

		// Either takes both back, and brings both back.
		for _, id := range []string{newer, older} {
			if restored := p.undo(t, id); len(restored) != 2 {
				t.Errorf("restored %q", restored)
			}
			asBefore(t, "the older one, taken back", wasOlder, stored(t, store, older))
			asBefore(t, "the newer one, taken back", wasNewer, stored(t, store, newer))
			wantFacts(t, "taken back", store, "I live in Graz.")
			if diff := cmp.Diff([]string{"I live in Porto."}, outdatedIn(t, store)); diff != "" {
				t.Errorf("outdated passages (-want +got):\n%s", diff)
			}
			wantTaken(t, "taken back", x, older)
			p.undo(t, id)
			wantFacts(t, "brought back", store, "I live in Porto.")
			wantTaken(t, "brought back", x, newer)
		}

		// Said again, the newer one holds again. There is nothing to take back then.
		time.Sleep(time.Hour)
		p.settle(t, userTurn("t4", "I live in Graz."))
		wantFacts(t, "said again", store, "I live in Graz.")
		for _, id := range []string{older, newer} {
			if _, err := p.Undo(t.Context(), testScope, id, Cause{}); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("undone after a later statement: %v", err)
			}
		}
		wantFacts(t, "not undone", store, "I live in Graz.")
	})
}

// Of a chain the one that holds gives way.
func TestPreferTheFirstOfThree(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
		var ids []string
		for _, text := range []string{"I live in Porto.", "I live in Graz.", "I live in Rome."} {
			ids = append(ids, p.fact(t, text).ID)
			time.Sleep(time.Hour)
		}
		p.prefer(t, ids[0])
		wantFacts(t, "preferred", store, "I live in Porto.")
		if m := stored(t, store, ids[2]); m.SupersededBy != ids[0] {
			t.Errorf("the last is superseded by %q, want the first", m.SupersededBy)
		}
		if m := stored(t, store, ids[1]); m.SupersededBy != ids[2] {
			t.Errorf("the second is superseded by %q, want the last", m.SupersededBy)
		}
		p.prefer(t, ids[1])
		wantFacts(t, "the second", store, "I live in Graz.")
		p.undo(t, ids[1])
		p.undo(t, ids[2])
		wantFacts(t, "taken back", store, "I live in Rome.")
	})
}

// An opposite stays one.
func TestPreferAnOpposite(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
		older := p.fact(t, "I eat meat.")
		time.Sleep(time.Hour)
		newer := p.fact(t, "I don't eat meat.")
		if !facts.Contradicts(&newer, &older) {
			t.Fatalf("not an opposite: %+v", newer)
		}
		changed := p.prefer(t, older.ID)
		if !facts.Contradicts(&changed[0], &changed[1]) || facts.Contradicts(&changed[1], &changed[0]) {
			t.Errorf("tags %q and %q", changed[0].Tags, changed[1].Tags)
		}
	})
}

func TestPreferRefuses(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		p.settle(t, userTurn("t1", "I live in Porto."))
		older := factWith(t, store, "Porto")
		for id, want := range map[string]error{older: ErrCurrent, "t1.0": ErrCurrent, "unknown": storage.ErrNotFound} {
			if _, err := p.Prefer(t.Context(), testScope, id, Cause{}); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", id, err, want)
			}
		}
		time.Sleep(time.Hour)
		newer := p.fact(t, "I live in Graz.").ID
		if _, err := p.Prefer(t.Context(), userScope(2), older, Cause{}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("another user: %v", err)
		}
		// Alone, if the newer one is gone: it is not brought back.
		if _, err := p.Discard(t.Context(), testScope, Cause{}, newer); err != nil {
			t.Fatal(err)
		}
		if changed := p.prefer(t, older); len(changed) != 1 {
			t.Errorf("changed %+v", changed)
		}
		wantFacts(t, "alone", store, "I live in Porto.")
		if m := stored(t, store, newer); m.DeletedAt == 0 {
			t.Error("what was deleted is back")
		}
		if p.undo(t, older); stored(t, store, older).SupersededBy != newer {
			t.Errorf("taken back: %+v", stored(t, store, older))
		}
		if _, err := p.Discard(t.Context(), testScope, Cause{}, older); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Prefer(t.Context(), testScope, older, Cause{}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("deleted: %v", err)
		}
	})
}

// A failure leaves what can be repeated and taken back.
func TestPreferWithAFailingStore(t *testing.T) {
	for _, after := range []bool{false, true} {
		byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
			older := p.fact(t, "I live in Porto.").ID
			time.Sleep(time.Hour)
			p.fact(t, "I live in Graz.")
			failure := errors.New("no space")
			store.setFault(func(method string, _ int) (error, bool) {
				if method == "PutRecords" {
					return failure, after
				}
				return nil, false
			})
			if _, err := p.Prefer(t.Context(), testScope, older, Cause{}); !errors.Is(err, failure) {
				t.Errorf("got %v, want the store's error", err)
			}
			store.clearFault()
			wantFacts(t, "failed", store, "I live in Graz.")
			time.Sleep(time.Second)
			p.prefer(t, older)
			wantFacts(t, "repeated", store, "I live in Porto.")
			p.undo(t, older)
			wantFacts(t, "taken back", store, "I live in Graz.")
		})
	}
}

// What was edited since keeps the edit when the preference is taken back.
func TestUndoOfAPreferenceKeepsEdits(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
		older := p.fact(t, "I live in Porto.").ID
		time.Sleep(time.Hour)
		newer := p.fact(t, "I live in Graz.").ID
		p.prefer(t, older)
		p.edit(t, newer, func(m *storage.Memory) error { m.Tags = append(m.Tags, "mine"); return nil })
		p.undo(t, older)
		wantFacts(t, "taken back", store, "I live in Graz.")
		if m := stored(t, store, newer); !slices.Contains(m.Tags, "mine") {
			t.Errorf("its tags: %q", m.Tags)
		}
	})
}
