package persist

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// inConversation returns a turn of a conversation, said before now.
func inConversation(conversation string, before time.Duration, id, text string) func() Turn {
	return func() Turn {
		t := turnAt(id, text, "I see. Dinner is ready.", time.Now().Add(-before))
		t.Conversation = conversation
		return t
	}
}

// TestForgottenConversationStaysForgotten checks that nothing said in it is
// made a fact again, even if its turns are handed in again, as by an import.
// The same words are facts where they were said elsewhere, whenever that was,
// and if they are said in it again.
func TestForgottenConversationStaysForgotten(t *testing.T) {
	peanuts := "I'm allergic to peanuts."
	for name, c := range map[string]struct {
		again func() Turn
		want  []string
	}{
		"the same turn":                  {inConversation("c1", 2*time.Hour, "t1", peanuts), nil},
		"another of its turns":           {inConversation("c1", 3*time.Hour, "t9", "My name is Zoe. And "+peanuts), nil},
		"asked to be kept":               {inConversation("c1", 3*time.Hour, "t9", "Remember that my locker is number 12."), nil},
		"elsewhere, at that time":        {inConversation("c2", 2*time.Hour, "t2", peanuts), []string{`"` + peanuts + `"`}},
		"elsewhere, in another's manner": {inConversation("", 2*time.Hour, "t2", peanuts), []string{`"` + peanuts + `"`}},
		"in it, later":                   {inConversation("c1", -time.Hour, "t3", peanuts), []string{`"` + peanuts + `"`}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, restart := range []bool{false, true} {
				withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
					p.settle(t, inConversation("c1", 2*time.Hour, "t1", peanuts)())
					if _, err := p.ForgetConversation(t.Context(), testScope, "c1"); err != nil {
						t.Fatal(err)
					}
					if n, values := tombstones(t, store); n != 1 || strings.Contains(values, "c1") {
						t.Errorf("%d tombstones: %s", n, values)
					}
					if restart {
						p.stop()
						p = start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
					}
					p.settle(t, c.again())
					if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, c.want) {
						t.Errorf("facts: %q, want %q", got, c.want)
					}
					if restart {
						p.stop()
					}
				})
			}
		})
	}
}

// TestForgetUnknownConversation checks that an unknown name leaves no
// tombstone.
func TestForgetUnknownConversation(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, inConversation("c1", time.Hour, "t1", "I live in Porto.")())
		if _, err := p.ForgetConversation(t.Context(), testScope, "unknown"); err != nil {
			t.Fatal(err)
		}
		if n, _ := tombstones(t, store); n != 0 {
			t.Errorf("%d tombstones, want none", n)
		}
	})
}

// TestForgetUnstoredConversationFailsHalfway has the store refuse the tombstone
// of a conversation whose turns are all in the queue or spool. Forgetting it
// again leaves one.
func TestForgetUnstoredConversationFailsHalfway(t *testing.T) {
	for _, where := range []string{"queued", "spooled"} {
		for _, after := range []bool{false, true} { // the write took effect
			withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
				turn := inConversation("c1", 2*time.Hour, "t1", "I'm allergic to peanuts.")
				mustEnqueue(t, p.Pipeline, turn())
				if where == "spooled" {
					time.Sleep(defaultTuning.commitInterval)
					synctest.Wait()
				}
				store.setFault(func(method string, _ int) (error, bool) {
					if method == "PutRecords" {
						return storage.ErrUnavailable, after
					}
					return nil, false
				})
				if got, err := p.ForgetConversation(t.Context(), testScope, "c1"); !errors.Is(err, storage.ErrUnavailable) {
					t.Fatalf("%s: got %+v, %v, want ErrUnavailable", where, got, err)
				}
				store.clearFault()
				got, err := p.ForgetConversation(t.Context(), testScope, "c1")
				if err != nil || got.Queued+got.Spooled != 1 || (got.Spooled == 1) != (where == "spooled") {
					t.Errorf("%s: receipt %+v, %v", where, got, err)
				}
				if n, _ := tombstones(t, store); n != 1 {
					t.Errorf("%s: %d tombstones, want 1", where, n)
				}
				p.settle(t, turn())
				if got := current(factsOf(t, store, testScope)); len(got) > 0 {
					t.Errorf("%s: came back: %v", where, got)
				}
			})
		}
	}
}

// TestForgetConversationKeepsOthers checks that of what the user said in
// several conversations only the forgotten one's share is deleted, in whatever
// order they were audited.
func TestForgetConversationKeepsOthers(t *testing.T) {
	porto, lisbon, graz := "I live in Porto.", "I live in Lisbon.", "I live in Graz."
	for name, c := range map[string]struct {
		userTurn   []func() Turn
		want       string // the fact that holds
		of         string // its conversation
		superseded []string
	}{
		"said elsewhere after it":   {[]func() Turn{inConversation("c1", 9*time.Hour, "a", porto), inConversation("c2", 8*time.Hour, "b", "Well, "+porto)}, porto, "c2", nil},
		"said elsewhere before it":  {[]func() Turn{inConversation("c2", 9*time.Hour, "a", porto), inConversation("c1", 8*time.Hour, "b", porto)}, porto, "c2", nil},
		"audited late":              {[]func() Turn{inConversation("c1", 8*time.Hour, "b", porto), inConversation("c2", 9*time.Hour, "a", porto)}, porto, "c2", nil},
		"said in three":             {[]func() Turn{inConversation("c1", 9*time.Hour, "a", porto), inConversation("c2", 8*time.Hour, "b", porto), inConversation("c3", 7*time.Hour, "c", porto)}, porto, "c2", nil},
		"twice in it":               {[]func() Turn{inConversation("c1", 9*time.Hour, "a", porto), inConversation("c1", 8*time.Hour, "b", porto)}, "", "", nil},
		"superseded by it":          {[]func() Turn{inConversation("c2", 9*time.Hour, "a", porto), inConversation("c1", 8*time.Hour, "b", lisbon)}, porto, "c2", nil},
		"a link of a chain":         {[]func() Turn{inConversation("c2", 9*time.Hour, "a", porto), inConversation("c1", 8*time.Hour, "b", lisbon), inConversation("c3", 7*time.Hour, "c", graz)}, graz, "c3", []string{porto}},
		"the newest, said before":   {[]func() Turn{inConversation("c2", 9*time.Hour, "a", lisbon), inConversation("c1", 8*time.Hour, "b", porto), inConversation("c3", 10*time.Hour, "c", porto)}, lisbon, "c2", []string{porto}},
		"superseded, and elsewhere": {[]func() Turn{inConversation("c1", 9*time.Hour, "a", porto), inConversation("c2", 8*time.Hour, "b", porto), inConversation("c3", 7*time.Hour, "c", lisbon)}, lisbon, "c3", []string{porto}},
		"superseding, elsewhere":    {[]func() Turn{inConversation("c2", 9*time.Hour, "a", porto), inConversation("c1", 8*time.Hour, "b", lisbon), inConversation("c3", 7*time.Hour, "c", lisbon)}, lisbon, "c3", []string{porto}},
	} {
		t.Run(name, func(t *testing.T) {
			withPipeline(t, nil, func(t *testing.T, p running, store *faulty, index *indexed) {
				for _, turn := range c.userTurn {
					p.settle(t, turn())
				}
				// The first try is cut short before anything is deleted.
				store.setFault(func(method string, _ int) (error, bool) {
					if method == "Delete" {
						return storage.ErrUnavailable, false
					}
					return nil, false
				})
				if _, err := p.ForgetConversation(t.Context(), testScope, "c1"); !errors.Is(err, storage.ErrUnavailable) {
					t.Fatalf("got %v, want ErrUnavailable", err)
				}
				store.clearFault()
				if _, err := p.ForgetConversation(t.Context(), testScope, "c1"); err != nil {
					t.Fatal(err)
				}
				pausableIndex, superseded := "", []string(nil)
				for _, m := range factsOf(t, store, testScope) {
					quote, _, _ := extract.Quotation(m.Text)
					quote = strings.TrimPrefix(quote, "Well, ")
					if m.Conversation == "c1" {
						t.Errorf("left of the conversation: %s", quote)
					}
					if m.SupersededBy != "" {
						if superseded = append(superseded, quote); m.ValidTo == 0 {
							t.Errorf("%s is superseded and valid", quote)
						}
						if _, err := store.Memory(t.Context(), testScope, m.SupersededBy); err != nil {
							t.Errorf("%s is superseded by what is not there: %v", quote, err)
						}
						continue
					}
					if pausableIndex != "" || m.ValidTo != 0 || m.Conversation != c.of {
						t.Errorf("%s of %s, valid to %d, beside %q", quote, m.Conversation, m.ValidTo, pausableIndex)
					}
					pausableIndex = quote
					if _, err := store.Memory(t.Context(), testScope, storage.TurnMemoryID(m.Provenance.Turn, 0)); err != nil {
						t.Errorf("%s has no passage: %v", quote, err)
					}
				}
				if pausableIndex != c.want || !cmp.Equal(superseded, c.superseded) {
					t.Errorf("got %q, superseded %q, want %q and %q", pausableIndex, superseded, c.want, c.superseded)
				}
				p.settle(t, inConversation("c4", time.Hour, "z", "We had couscous.")())
				if got := current(factsOf(t, store, testScope)); c.want != "" && len(got) != 1 {
					t.Errorf("after the next audit: %q", got)
				}
			})
		})
	}
}
