package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

func (p running) discard(t *testing.T, ids ...string) []string {
	t.Helper()
	gone, err := p.Discard(t.Context(), testScope, Cause{By: "anna", Why: "wrong"}, ids...)
	if err != nil {
		t.Fatalf("Discard: %v", err)
	}
	time.Sleep(time.Second)
	return idsOf(gone)
}

func (p running) undo(t *testing.T, id string) []string {
	t.Helper()
	back, err := p.Undo(t.Context(), testScope, id, Cause{By: "anna", Why: "right"})
	if err != nil {
		t.Fatalf("Undo: %v", err)
	}
	time.Sleep(time.Second)
	return idsOf(back)
}

func (p running) purge(t *testing.T) int {
	t.Helper()
	n, err := p.Purge(t.Context(), time.Now())
	if err != nil {
		t.Fatalf("Purge: %v", err)
	}
	return n
}

func idsOf(ms []storage.Memory) (ids []string) {
	for _, m := range ms {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

func wantIDs(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// inTrash returns the ids that wait to be purged.
func inTrash(t *testing.T, store *faulty) (keys int) {
	t.Helper()
	page, err := store.Records(t.Context(), storage.BucketTrash, testScope, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Records)
}

// A passage takes the facts that were made of it with it, and all of it can be
// brought back.
func TestDiscardAndUndo(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		p.settle(t, userTurn("t1", "I'm allergic to peanuts. Please call me Zoe."), userTurn("t2", "I live in Porto."))
		allergy, name := factWith(t, store, "peanuts"), factWith(t, store, "Zoe")
		group := []string{"t1.0", allergy, name}
		before := map[string]storage.Memory{}
		for _, id := range group {
			before[id] = stored(t, store, id)
		}
		if got := whereIs(t, store, testScope, "peanuts"); !slices.Contains(got, "episode") || !slices.Contains(got, "fact") || !slices.Contains(got, "summary") {
			t.Errorf("before: %q", got)
		}
		wantIDs(t, "discarded", p.discard(t, "t1.0"), group...)
		wantTaken(t, "discarded", x, group...)
		wantFacts(t, "discarded", store, "I live in Porto.")
		for _, id := range group {
			if m := stored(t, store, id); x.has(id) || m.DeletedAt == 0 || m.Text != before[id].Text {
				t.Errorf("%s: recalled %t, stored as %+v", id, x.has(id), m)
			}
			rs, err := p.Revisions(t.Context(), testScope, id)
			if err != nil || len(rs) != 1 || rs[0].Op != OpDelete || rs[0].By != "anna" || rs[0].Why != "wrong" || rs[0].Group == "" {
				t.Errorf("%s: revisions %+v, %v", id, rs, err)
			}
		}
		if !x.has("t2.0") || !x.has("t1.1") || !x.has(factWith(t, store, "Porto")) {
			t.Error("others are not recalled any more")
		}
		for _, s := range summaries(t, p) {
			if strings.Contains(s, "peanuts") {
				t.Errorf("a summary has the words: %s", s)
			}
		}

		wantIDs(t, "undone, by a fact of the group", p.undo(t, name), group...)
		for _, id := range group {
			want, got := before[id], stored(t, store, id)
			want.Version, want.UpdatedAt = got.Version, got.UpdatedAt
			if diff := cmp.Diff(want, got); diff != "" || !x.has(id) {
				t.Errorf("%s: recalled %t, stored (-before +after):\n%s", id, x.has(id), diff)
			}
		}
		if n, values := tombstones(t, store); n != 0 || inTrash(t, store) != 0 {
			t.Errorf("%d tombstones %s, %d in the trash", n, values, inTrash(t, store))
		}
		wantTaken(t, "undone", x)
		if !slices.ContainsFunc(summaries(t, p), func(s string) bool { return strings.Contains(s, "peanuts") }) {
			t.Errorf("the summary has forgotten it: %q", summaries(t, p))
		}
		time.Sleep(48 * time.Hour)
		if n := p.purge(t); n != 0 {
			t.Errorf("%d purged, want none", n)
		}
		// Audits know the facts: said again, they are reinforced.
		p.settle(t, userTurn("t3", "I'm allergic to peanuts."))
		wantFacts(t, "said again", store, "I live in Porto.", "I'm allergic to peanuts.", "Please call me Zoe.")
		if got := stored(t, store, allergy); got.Confidence <= before[allergy].Confidence {
			t.Error("said again, it is not reinforced")
		}
	})
}

func summaries(t *testing.T, p running) (out []string) {
	t.Helper()
	all, err := p.Summaries(t.Context(), testScope)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		out = append(out, fmt.Sprintf("%+v", all[i]))
	}
	return out
}

// Undo of an undo discards again, for another day.
func TestUndoOfUndo(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		p.settle(t, userTurn("t1", "I'm allergic to peanuts."))
		group := []string{"t1.0", factWith(t, store, "peanuts")}
		p.discard(t, "t1.0")
		time.Sleep(20 * time.Hour)
		p.undo(t, "t1.0")
		x.taken()
		time.Sleep(20 * time.Hour)
		wantIDs(t, "again", p.undo(t, "t1.0"), group...)
		wantTaken(t, "again", x, group...)
		wantFacts(t, "again", store)
		for _, id := range group {
			if x.has(id) {
				t.Errorf("%s is recalled", id)
			}
		}
		if n, _ := tombstones(t, store); n != 1 {
			t.Errorf("%d tombstones, want 1", n)
		}
		time.Sleep(23 * time.Hour)
		if n := p.purge(t); n != 0 {
			t.Errorf("%d purged before the day is over", n)
		}
		wantIDs(t, "a third time", p.undo(t, group[1]), group...)
		wantFacts(t, "a third time", store, "I'm allergic to peanuts.")
		wantIDs(t, "a fourth time", p.undo(t, group[1]), group...)
		time.Sleep(24 * time.Hour)
		if n := p.purge(t); n != 2 || inTrash(t, store) != 0 {
			t.Errorf("%d purged, want 2; %d in the trash", n, inTrash(t, store))
		}
		if where := whereIs(t, store, testScope, "peanuts"); len(where) > 0 {
			t.Errorf("still in %q", where)
		}
		if _, err := p.Undo(t.Context(), testScope, "t1.0", Cause{}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("undone after its bytes are gone: %v, want ErrNotFound", err)
		}
	})
}

// Edits are undone one after the other, and a change of its own undoes an undo.
func TestUndoEdits(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		m := p.fact(t, "I live in Porto.")
		if _, err := p.Undo(t.Context(), testScope, m.ID, Cause{}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("nothing was changed: %v, want ErrNotFound", err)
		}
		time.Sleep(time.Second)
		p.edit(t, m.ID, retext("I live in Graz."))
		p.edit(t, m.ID, func(m *storage.Memory) error { m.Priority = 0.125; return nil })
		other := p.fact(t, "I have two cats.")
		p.edit(t, other.ID, retext("I have three cats."))
		x.taken()
		want := func(what, text string, priority float64) {
			t.Helper()
			if got := stored(t, store, m.ID); got.Text != text || got.Priority != priority || x.get(m.ID).Text != text {
				t.Errorf("%s: got %q, priority %g, want %q, %g; the index has %q", what, got.Text, got.Priority, text, priority, x.get(m.ID).Text)
			}
		}
		wantIDs(t, "undone", p.undo(t, m.ID), m.ID)
		want("the priority", "I live in Graz.", m.Priority)
		wantTaken(t, "the priority", x)
		p.undo(t, m.ID)
		want("the change again", "I live in Graz.", 0.125)
		p.edit(t, m.ID, retext("I live in Linz."))
		x.taken()
		p.undo(t, m.ID)
		want("another edit", "I live in Graz.", 0.125)
		wantTaken(t, "another edit", x, m.ID)
		for _, bad := range []struct {
			scope storage.Scope
			id    string
		}{{userScope(2), m.ID}, {testScope, "fx"}} {
			if _, err := p.Undo(t.Context(), bad.scope, bad.id, Cause{}); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("undo of %v: %v, want ErrNotFound", bad, err)
			}
		}
		if got := stored(t, store, other.ID); got.Text != "I have three cats." {
			t.Errorf("another memory: %q", got.Text)
		}
		rs, err := p.Revisions(t.Context(), testScope, m.ID)
		var ops []string
		for _, r := range rs {
			ops = append(ops, r.Op)
		}
		if want := []string{OpUndo, OpEdit, OpUndo, OpUndo, OpEdit, OpEdit}; err != nil || !slices.Equal(ops, want) {
			t.Errorf("revisions %q, %v, want %q", ops, err, want)
		}
	})
}

// What superseded a memory after it was changed still does after an undo.
func TestUndoKeepsWhatSuperseded(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		m := p.fact(t, "I live in Porto.")
		time.Sleep(time.Second)
		p.edit(t, m.ID, func(m *storage.Memory) error { m.Priority = 0.5; return nil })
		p.settle(t, userTurn("t1", "I live in Graz."))
		p.undo(t, m.ID)
		wantFacts(t, "undone", store, "I live in Graz.")
		if got := stored(t, store, m.ID); got.Priority != m.Priority || x.has(m.ID) {
			t.Errorf("priority %g, recalled %t", got.Priority, x.has(m.ID))
		}
	})
}

// Ids that are not of the scope, or are gone already, are not found, and the
// others of a call are discarded.
func TestDiscardFails(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		m, other := p.fact(t, "I live in Porto."), p.fact(t, "I have two cats.")
		for _, bad := range []struct {
			scope storage.Scope
			ids   []string
		}{{testScope, []string{"fx"}}, {testScope, nil}, {userScope(2), []string{m.ID, other.ID}}} {
			if gone, err := p.Discard(t.Context(), bad.scope, Cause{}, bad.ids...); !errors.Is(err, storage.ErrNotFound) || len(gone) > 0 {
				t.Errorf("%v: got %d, %v, want ErrNotFound", bad, len(gone), err)
			}
		}
		if _, err := p.Discard(t.Context(), storage.Scope{}, Cause{}, m.ID); !errors.Is(err, storage.ErrInvalid) {
			t.Errorf("no scope: %v, want ErrInvalid", err)
		}
		wantFacts(t, "all failed", store, "I live in Porto.", "I have two cats.")
		wantTaken(t, "all failed", x)
		wantIDs(t, "one of them is known", p.discard(t, "fx", m.ID, m.ID), m.ID)
		if _, err := p.Discard(t.Context(), testScope, Cause{}, m.ID); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("once more: %v, want ErrNotFound", err)
		}
		if n := inTrash(t, store); n != 1 {
			t.Errorf("%d in the trash, want 1", n)
		}
		wantFacts(t, "one is left", store, "I have two cats.")
	})
}

// TestDiscardedStaysDiscarded has passages audited again, and handed in again,
// in every way after they or their facts were discarded.
func TestDiscardedStaysDiscarded(t *testing.T) {
	const peanuts = "I'm allergic to peanuts."
	restart := func(t *testing.T, p *running, store *faulty, x *handIndex) {
		t.Helper()
		p.stop()
		value, err := encodeMark("c1", 0)
		if err != nil {
			t.Fatal(err)
		}
		mark := storage.Record{Bucket: storage.BucketSpool, Scope: testScope, Key: markPrefix + "x", Value: value}
		if err := store.PutRecords(t.Context(), []storage.Record{mark}); err != nil {
			t.Fatal(err)
		}
		*p = start(t, New(DefaultConfig(), store, store, x, newRedactor(t), nil, nil))
		time.Sleep(time.Minute)
		synctest.Wait()
		if p.Metrics().Audits.Made == 0 {
			t.Error("nothing was audited again")
		}
	}
	for _, tt := range []struct {
		name    string
		passage bool // is discarded, with its fact; otherwise the fact alone
		audited bool // before that
		again   func(t *testing.T, p *running, store *faulty, x *handIndex)
	}{
		{"its window again", false, true, func(t *testing.T, p *running, _ *faulty, _ *handIndex) {
			p.settle(t, userTurn("t2", "We like the guests of the dinner."))
		}},
		{"a passage whose audit is due", true, false, func(t *testing.T, p *running, _ *faulty, _ *handIndex) {
			p.settle(t, userTurn("t2", "We like the guests of the dinner."))
		}},
		{"after a crash", false, true, restart},
		{"a passage, after a crash", true, true, restart},
		{"a passage that was not audited, after a crash", true, false, restart},
		{"in another turn of that time", false, true, func(t *testing.T, p *running, _ *faulty, _ *handIndex) {
			p.settle(t, turnAt("t3", "Hey, i am really ALLERGIC to Peanuts!", "I see. Dinner is ready.", time.Now().Add(-2*time.Hour)))
		}},
		{"its turn once more", true, true, func(t *testing.T, p *running, _ *faulty, _ *handIndex) {
			p.settle(t, userTurn("t1", peanuts))
		}},
		{"another reply to it", true, true, func(t *testing.T, p *running, _ *faulty, _ *handIndex) {
			p.settle(t, turnOf(testScope, "t1", peanuts, "Dinner without nuts, then."))
		}},
		{"its turn once more, after a restart", true, true, func(t *testing.T, p *running, store *faulty, x *handIndex) {
			restart(t, p, store, x)
			p.settle(t, userTurn("t1", peanuts))
		}},
		{"another conversation forgotten", true, true, func(t *testing.T, p *running, _ *faulty, _ *handIndex) {
			elsewhere := userTurn("t4", peanuts)
			elsewhere.Conversation = "c4"
			p.settle(t, elsewhere)
			if _, err := p.ForgetConversation(t.Context(), testScope, "c4"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, x := newFaulty(), &handIndex{}
				p := start(t, New(DefaultConfig(), store, store, x, newRedactor(t), nil, nil))
				mustEnqueue(t, p.Pipeline, userTurn("t1", peanuts))
				mustFlush(t, p.Pipeline)
				id := "t1.0"
				if tt.audited {
					if err := p.Settle(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if !tt.passage {
					id = factWith(t, store, "peanuts")
				}
				time.Sleep(time.Second)
				p.discard(t, id)
				tt.again(t, &p, store, x)
				wantFacts(t, "again", store)
				if m := stored(t, store, id); m.DeletedAt == 0 || x.has(id) {
					t.Errorf("%s came back: %+v", id, m)
				}
				for key, m := range x.ms {
					if m.Kind == storage.KindFact || tt.passage && strings.Contains(m.Text, "allergic") {
						t.Errorf("%s is recalled: %q", key, m.Text)
					}
				}
				p.stop()
			})
		})
	}
}

// A discarded passage bears nothing out when another conversation, in which the
// same was said, is forgotten.
func TestDiscardedPassageBearsNothingOut(t *testing.T) {
	for _, discarded := range []bool{false, true} {
		byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
			const peanuts = "I'm allergic to peanuts."
			first := userTurn("t1", peanuts)
			first.Conversation = "c2"
			p.settle(t, first)
			time.Sleep(time.Minute)
			p.settle(t, userTurn("t2", peanuts)) // reinforces it
			var want []string
			if discarded {
				p.discard(t, "t2.0")
			} else {
				want = []string{peanuts}
			}
			wantFacts(t, "before", store, peanuts)
			if _, err := p.ForgetConversation(t.Context(), testScope, "c2"); err != nil {
				t.Fatal(err)
			}
			wantFacts(t, fmt.Sprint("discarded ", discarded), store, want...)
		})
	}
}

// TestPurge erases what was discarded a day ago from every place, and leaves
// what is not due.
func TestPurge(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		p.settle(t, userTurn("t1", "I'm allergic to peanuts."), userTurn("t2", "I live in Porto."))
		first := p.fact(t, "I have two cats.")
		time.Sleep(time.Second)
		p.edit(t, first.ID, retext("I have two cats and a canary."))
		p.edit(t, "t1.0", func(m *storage.Memory) error { m.Priority = 0.5; return nil })
		allergy := factWith(t, store, "peanuts")
		later := p.fact(t, "I play the oboe.")
		bobs, err := p.Remember(t.Context(), userScope(1), given("I'm allergic to peanuts."))
		if err != nil {
			t.Fatal(err)
		}
		chain := stored(t, store, "t1.0").Provenance.Chain
		putReceipt(t, store, "x1", receipt.Receipt{Conversation: "c1", Turn: chain, Query: "I'm allergic to peanuts."}, stored(t, store, first.ID), later, stored(t, store, allergy))
		putReceipt(t, store, "x2", receipt.Receipt{Query: "what about it?"}, later)
		words := []string{"peanuts", "canary", "cats"}

		p.discard(t, "t1.0")
		p.discard(t, first.ID)
		time.Sleep(time.Hour)
		p.discard(t, later.ID)
		time.Sleep(22*time.Hour + 59*time.Minute)
		if n := p.purge(t); n != 0 {
			t.Errorf("%d purged before the day is over", n)
		}
		for _, w := range words {
			if len(whereIs(t, store, testScope, w)) == 0 {
				t.Errorf("%s is gone too early", w)
			}
		}
		time.Sleep(time.Minute + time.Second)
		if n := p.purge(t); n != 3 {
			t.Errorf("%d purged, want the passage, its fact, and the cats", n)
		}
		for _, w := range words {
			if where := whereIs(t, store, testScope, w); len(where) > 0 {
				t.Errorf("%s is still in %q", w, where)
			}
		}
		for _, id := range []string{"t1.0", allergy, first.ID} {
			if _, err := store.Memory(t.Context(), testScope, id); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s: %v, want ErrNotFound", id, err)
			}
			if rs, err := p.Revisions(t.Context(), testScope, id); err != nil || len(rs) > 0 {
				t.Errorf("%s: %d revisions, %v", id, len(rs), err)
			}
		}
		// What is not due, and another user's.
		if m := stored(t, store, later.ID); m.DeletedAt == 0 || inTrash(t, store) != 1 {
			t.Errorf("what is not due: %+v, %d in the trash", m, inTrash(t, store))
		}
		var found []string
		for _, key := range []string{"x1", "x2"} {
			got, err := receipt.Get(t.Context(), store, testScope, key)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, got.Memories()...)
		}
		wantIDs(t, "in receipts", found, later.ID, later.ID)
		if _, err := store.Memory(t.Context(), userScope(1), bobs[0].Memory.ID); err != nil {
			t.Errorf("another user's: %v", err)
		}
		wantFacts(t, "left", store, "I live in Porto.")
		wantIDs(t, "undone", p.undo(t, later.ID), later.ID)
		time.Sleep(48 * time.Hour)
		if n := p.purge(t); n != 0 {
			t.Errorf("%d purged after an undo", n)
		}
		wantFacts(t, "undone", store, "I live in Porto.", "I play the oboe.")
		// What was purged stays forgotten.
		p.settle(t, turnAt("t5", "I'm allergic to peanuts.", "I see.", time.Now().Add(-100*time.Hour)))
		wantFacts(t, "an import of that time", store, "I live in Porto.", "I play the oboe.")
	})
}

// A purge erases only what is still discarded: a document may have been added
// again under the same ids, or the store may have failed before anything was
// marked.
func TestPurgeLeavesWhatIsBack(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		page := func(id string) storage.Memory {
			return storage.Memory{ID: id, Kind: storage.KindResource, Text: "The crane lifts nine tons, says page " + id}
		}
		p.remember(t, page("r1"), page("r2"), page("r3"), page("r4"))
		p.discard(t, "r1", "r2", "r3")
		time.Sleep(time.Hour)
		p.remember(t, page("r1"))
		p.remember(t, page("r2"))
		time.Sleep(time.Hour)
		p.discard(t, "r2") // again, and so for another day
		store.refuseWhere(func(m string) bool { return m == "Put" })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p.Discard(ctx, testScope, Cause{}, "r4"); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("of a store that is away: %v", err)
		}
		store.refuseWhere(nil)
		time.Sleep(22*time.Hour + time.Minute)
		if n := p.purge(t); n != 1 { // r3
			t.Errorf("%d purged, want 1", n)
		}
		time.Sleep(2 * time.Hour)
		if n := p.purge(t); n != 1 { // r2
			t.Errorf("%d purged, want 1", n)
		}
		wantIDs(t, "left", idsOf(memories(t, store, testScope)), "r1", "r4")
		if inTrash(t, store) != 0 || !x.has("r1") || !x.has("r4") {
			t.Errorf("%d in the trash, recalled %t and %t", inTrash(t, store), x.has("r1"), x.has("r4"))
		}
	})
}

// A purge that fails is repeated.
func TestPurgeFails(t *testing.T) {
	for _, method := range []string{"AllRecords", "Memory", "Delete", "DeleteRecords"} {
		for _, after := range []bool{false, true} {
			byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
				p.settle(t, userTurn("t1", "I'm allergic to peanuts."))
				p.discard(t, "t1.0")
				time.Sleep(25 * time.Hour)
				store.setFault(func(m string, _ int) (error, bool) {
					if m == method {
						return storage.ErrUnavailable, after
					}
					return nil, false
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := p.Purge(ctx, time.Now()); err == nil {
					t.Errorf("%s, after %t: no error", method, after)
				}
				store.clearFault()
				p.purge(t)
				if where := whereIs(t, store, testScope, "peanuts"); len(where) > 0 || inTrash(t, store) != 0 {
					t.Errorf("%s, after %t: still in %q, %d in the trash", method, after, where, inTrash(t, store))
				}
			})
		}
	}
}

// A discarding or an undo that fails halfway can be repeated.
func TestDiscardFailsHalfway(t *testing.T) {
	for _, method := range []string{"PutRecords", "Put", "DeleteRecords", "Memory"} {
		for nth := 1; nth <= 4; nth++ {
			for _, after := range []bool{false, true} {
				for _, undo := range []bool{false, true} {
					byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
						name := fmt.Sprintf("%s %d, after %t, undo %t", method, nth, after, undo)
						p.settle(t, userTurn("t1", "I'm allergic to peanuts."))
						group := []string{"t1.0", factWith(t, store, "peanuts")}
						act := func(ctx context.Context) (err error) {
							_, err = p.Discard(ctx, testScope, Cause{}, "t1.0")
							return err
						}
						if undo {
							p.discard(t, "t1.0")
							act = func(ctx context.Context) (err error) {
								_, err = p.Undo(ctx, testScope, "t1.0", Cause{})
								return err
							}
						}
						seen := 0
						store.setFault(func(m string, _ int) (error, bool) {
							if m != method {
								return nil, false
							}
							if seen++; seen != nth {
								return nil, false
							}
							return storage.ErrUnavailable, after
						})
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						err := act(ctx)
						store.clearFault()
						time.Sleep(time.Second)
						live := func() int {
							n := 0
							for _, id := range group {
								if m := stored(t, store, id); m.DeletedAt == 0 {
									n++
								}
							}
							return n
						}
						want := 0
						if undo {
							want = 2
						}
						if err != nil && live() != want {
							if err := act(t.Context()); err != nil {
								t.Errorf("%s: again: %v", name, err)
							}
						}
						if live() != want {
							t.Errorf("%s: %d are not discarded, want %d", name, live(), want)
						}
						for _, id := range group {
							if err == nil && x.has(id) != (want == 2) {
								t.Errorf("%s: %s is recalled: %t", name, id, x.has(id))
							}
						}
						// A day later nothing is gone that nobody discarded.
						time.Sleep(25 * time.Hour)
						p.purge(t)
						if where := whereIs(t, store, testScope, "peanuts"); len(where) > 0 != undo {
							t.Errorf("%s: a day later it is in %q", name, where)
						}
					})
				}
			}
		}
	}
}

// TestForgettingLeavesNoCopies erases memories, a conversation and a user, of
// which there are revisions, receipts and discarded memories.
func TestForgettingLeavesNoCopies(t *testing.T) {
	for _, tt := range []struct {
		name   string
		forget func(ctx context.Context, p running, m storage.Memory) (Erasure, error)
		gone   []string
		left   []string
	}{
		{"a fact", func(ctx context.Context, p running, m storage.Memory) (Erasure, error) {
			return p.ForgetMemories(ctx, testScope, m.ID)
		}, []string{"cats", "dogs"}, []string{"peanuts", "oboe", "question", "Porto"}},
		{"a passage", func(ctx context.Context, p running, _ storage.Memory) (Erasure, error) {
			return p.ForgetMemories(ctx, testScope, "t1.0")
		}, []string{"peanuts", "hazelnuts", "term1"}, []string{"cats", "oboe", "question", "Porto"}},
		{"a conversation", func(ctx context.Context, p running, _ storage.Memory) (Erasure, error) {
			return p.ForgetConversation(ctx, testScope, "c1")
		}, []string{"peanuts", "hazelnuts", "Porto", "question", "term1", "term2"}, []string{"cats", "oboe", "elsewhere"}},
		{"a user", func(ctx context.Context, p running, _ storage.Memory) (Erasure, error) {
			return p.ForgetUser(ctx, testScope)
		}, []string{"cats", "dogs", "peanuts", "hazelnuts", "Porto", "oboe", "question", "elsewhere", "term"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
				first, second := userTurn("t1", "I'm allergic to peanuts."), userTurn("t2", "I live in Porto.")
				first.Chain, second.Chain = "chain1", "chain2"
				p.settle(t, first, second)
				m := p.fact(t, "I have two cats.")
				oboe := p.fact(t, "I play the oboe.")
				time.Sleep(time.Second)
				p.edit(t, m.ID, retext("I have two dogs."))
				p.edit(t, "t1.0", retext("I'm allergic to hazelnuts."))
				p.edit(t, "t1.0", retext("I'm allergic to peanuts."))
				p.edit(t, oboe.ID, retext("I play the oboe well."))
				fact := stored(t, store, factWith(t, store, "peanuts"))
				term := func(n string) []receipt.Candidate {
					return []receipt.Candidate{{ID: oboe.ID, Parts: []receipt.Part{{Name: "user", Term: "term" + n, Value: 1}}}}
				}
				putReceipt(t, store, "x1", receipt.Receipt{Conversation: "c1", Turn: "chain1", Query: "I'm allergic to peanuts.", Candidates: term("1")}, m, oboe)
				putReceipt(t, store, "x2", receipt.Receipt{Conversation: "c1", Turn: "chain2", Query: "a question", Candidates: term("2")}, stored(t, store, m.ID), fact)
				putReceipt(t, store, "x3", receipt.Receipt{Conversation: "c2", Turn: "chain3", Query: "elsewhere"}, oboe)
				for _, w := range append(tt.gone, tt.left...) {
					if len(whereIs(t, store, testScope, w)) == 0 {
						t.Fatalf("%s is nowhere: the test shows nothing", w)
					}
				}
				got, err := tt.forget(t.Context(), p, m)
				if err != nil {
					t.Fatal(err)
				}
				if got.Records[storage.BucketExchange] == 0 || got.Records[storage.BucketRevision] == 0 {
					t.Errorf("counted: %v", got.Records)
				}
				for _, w := range tt.gone {
					if where := whereIs(t, store, testScope, w); len(where) > 0 {
						t.Errorf("%s is still in %q", w, where)
					}
				}
				for _, w := range tt.left {
					if len(whereIs(t, store, testScope, w)) == 0 {
						t.Errorf("%s is gone", w)
					}
				}
				if tt.left == nil {
					if left := allOf(t, store, testScope); len(left) > 0 {
						t.Errorf("left: %q", left)
					}
					return
				}
				for _, key := range []string{"x1", "x2", "x3"} {
					if _, err := receipt.Get(t.Context(), store, testScope, key); err != nil {
						t.Errorf("receipt %s: %v", key, err)
					}
				}
			})
		})
	}
}

// The oldest revisions of a memory go beyond maxMemoryRevisions, and of a scope
// beyond maxScopeRevisions.
func TestRevisionLimits(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
		m, other := p.fact(t, "I live in Porto."), p.fact(t, "I have two cats.")
		time.Sleep(time.Second)
		p.edit(t, other.ID, retext("I have three cats."))
		for i := range maxMemoryRevisions + 10 {
			p.edit(t, m.ID, retext(fmt.Sprintf("I live at number %d of the street.", i)))
		}
		rs, err := p.Revisions(t.Context(), testScope, m.ID)
		if err != nil || len(rs) != maxMemoryRevisions {
			t.Fatalf("%d revisions, %v, want %d", len(rs), err, maxMemoryRevisions)
		}
		for i, r := range rs {
			if want := fmt.Sprintf("I live at number %d of the street.", maxMemoryRevisions+8-i); r.Before.Text != want {
				t.Fatalf("revision %d is of %q, want %q", i, r.Before.Text, want)
			}
		}
		if rs, err := p.Revisions(t.Context(), testScope, other.ID); err != nil || len(rs) != 1 {
			t.Errorf("another memory has %d, %v, want 1", len(rs), err)
		}
		// Those of a scope: others' that are older go, and the newest stay.
		now := time.Now()
		for from := 0; from < maxScopeRevisions; from += storage.MaxRecords {
			var batch []storage.Record
			for i := range storage.MaxRecords {
				n := from + i
				key := fmt.Sprintf("%s-%016x", recordKey(fmt.Sprint("m", n)), now.Add(time.Duration(n-maxScopeRevisions-100)*time.Hour).UnixNano())
				batch = append(batch, storage.Record{Bucket: storage.BucketRevision, Scope: testScope, Key: key, Value: []byte("{}")})
			}
			if err := store.PutRecords(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		p.edit(t, other.ID, retext("I have four cats."))
		keys, err := store.RecordKeys(t.Context(), storage.BucketRevision, testScope, 0)
		if err != nil || len(keys) != maxScopeRevisions {
			t.Errorf("%d of the scope, %v, want %d", len(keys), err, maxScopeRevisions)
		}
		has := func(n int) bool {
			return slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, recordKey(fmt.Sprint("m", n))) })
		}
		if has(0) || has(maxMemoryRevisions+1) || !has(maxMemoryRevisions+2) || !has(maxScopeRevisions-1) {
			t.Errorf("not the oldest went: %t %t %t %t", has(0), has(maxMemoryRevisions+1), has(maxMemoryRevisions+2), has(maxScopeRevisions-1))
		}
		if rs, err := p.Revisions(t.Context(), testScope, other.ID); err != nil || len(rs) != 2 {
			t.Errorf("the newest: %d, %v, want 2", len(rs), err)
		}
	})
}

// Revisions go after a time, as audit records do.
func TestRevisionsExpire(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
		m := p.fact(t, "I live in Porto.")
		time.Sleep(time.Second)
		p.edit(t, m.ID, retext("I live in Graz."))
		time.Sleep(p.cfg.Audit.Retention)
		if where := whereIs(t, store, testScope, "Porto"); len(where) > 0 {
			t.Errorf("still in %q", where)
		}
		if _, err := p.Undo(t.Context(), testScope, m.ID, Cause{}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("undo: %v, want ErrNotFound", err)
		}
	})
}
