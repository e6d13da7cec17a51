package persist

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// TestTurnsAgainKeepWhatWasChanged hands in turns once more, as a client that
// tries again or a run after a crash does, after their passages were changed by
// hand.
func TestTurnsAgainKeepWhatWasChanged(t *testing.T) {
	const question, answer = "My salary is ninety thousand.", "That is above the mean of your trade."
	first := turnOf(testScope, "t1", question, answer)
	for _, tt := range []struct {
		name  string
		again Turn
		texts []string // of the turn afterwards
	}{
		{"the same", first, []string{question, answer}},
		{"another reply", turnOf(testScope, "t1", question, "Good for you, and below the mean of your town."), []string{question, "Good for you, and below the mean of your town."}},
		{"other words", turnOf(testScope, "t1", "My salary is eighty thousand.", answer), []string{"My salary is eighty thousand.", answer}},
		{"a message more", Turn{
			ID: "t1", Scope: testScope, Conversation: "c1", Chain: first.Chain, Messages: []Message{first.Messages[0], {Role: storage.RoleUser, Text: "Is that much?"}, first.Messages[1]},
		}, []string{question, "Is that much?", answer}},
		{"a message less", Turn{ID: "t1", Scope: testScope, Conversation: "c1", Chain: first.Chain, Messages: first.Messages[:1]}, []string{question}},
	} {
		for passage, id := range []string{"t1.0", "t1.1"} {
			t.Run(tt.name+" "+id, func(t *testing.T) {
				byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
					mustEnqueue(t, p.Pipeline, first)
					mustFlush(t, p.Pipeline)
					p.edit(t, id, func(m *storage.Memory) error {
						m.Tags, m.Priority = []string{storage.PrivateTag, "work"}, 0.75
						return nil
					})
					mustEnqueue(t, p.Pipeline, tt.again)
					mustFlush(t, p.Pipeline)
					kept := passage < len(tt.texts) && tt.texts[passage] == first.Messages[passage].Text
					for seq, text := range tt.texts {
						own := storage.TurnMemoryID("t1", seq)
						m, of := stored(t, store, own), x.get(own)
						if m.Text != text || of.Text != text {
							t.Errorf("%s is %q, in the index %q, want %q", own, m.Text, of.Text, text)
						}
						if tt.name == "the same" && seq != passage {
							continue // as it was: the index leaves out the whole turn
						}
						// All of a turn that is written anew is private.
						if !isPrivate(&m) || !isPrivate(&of) {
							t.Errorf("%s is not private: %q, in the index %q", own, m.Tags, of.Tags)
						}
						if has := slices.Contains(m.Tags, "work") && m.Priority == 0.75 && slices.Contains(of.Tags, "work"); has != (kept && seq == passage) {
							t.Errorf("%s has tags %q, priority %g", own, m.Tags, m.Priority)
						}
					}
					if extra := storage.TurnMemoryID("t1", len(tt.texts)); x.has(extra) {
						t.Errorf("%s is recalled still", extra)
					}
				})
			})
		}
	}
}

// What somebody corrected stays corrected.
func TestTurnsAgainKeepCorrections(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
		turn := turnOf(testScope, "t1", "My sister lives in Porto.", "How nice for her.")
		mustEnqueue(t, p.Pipeline, turn)
		mustFlush(t, p.Pipeline)
		p.edit(t, "t1.0", retext("My sister lives in Graz, write to anna@example.org."))
		p.edit(t, "t1.0", retext("My sister lives in Linz, write to anna@example.org."))
		want := stored(t, store, "t1.0")
		for _, again := range []Turn{turn, turnOf(testScope, "t1", "My sister lives in Porto.", "Another reply.")} {
			mustEnqueue(t, p.Pipeline, again)
			mustFlush(t, p.Pipeline)
			got := stored(t, store, "t1.0")
			if got.Text != want.Text || len(got.Redactions) != len(want.Redactions) || x.get("t1.0").Text != want.Text || x.get("t1.0").Redactions != nil {
				t.Errorf("got %q, in the index %q, want %q", got.Text, x.get("t1.0").Text, want.Text)
			}
		}
		if got := stored(t, store, "t1.1").Text; got != "Another reply." {
			t.Errorf("the reply is %q", got)
		}
		// Other words are new.
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t1", "My sister lives in Rome.", "Another reply."))
		mustFlush(t, p.Pipeline)
		if got := stored(t, store, "t1.0").Text; got != "My sister lives in Rome." {
			t.Errorf("other words: got %q", got)
		}
	})
}

// A run that finds a turn stored already may have to update the index: with
// what is stored.
func TestRecoveredTurnsKeepWhatWasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, x := newFaulty(), &handIndex{}
		p := start(t, New(DefaultConfig(), store, store, x, newRedactor(t), nil, nil))
		store.refuseWhere(func(m string) bool { return m == "DeleteRecords" }) // so that the spool keeps them
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t1", "My salary is ninety thousand.", "I see."), turnOf(testScope, "t2", "My sister lives in Porto.", "I see."))
		time.Sleep(time.Minute)
		synctest.Wait()
		if !x.has("t1.0") || !x.has("t2.0") {
			t.Fatal("not stored")
		}
		// As two earlier runs would have: one tagged it, one discarded it.
		private, gone := stored(t, store, "t1.0"), stored(t, store, "t2.0")
		private.Tags, gone.DeletedAt = []string{storage.PrivateTag}, storage.TimeOf(time.Now())
		if err := store.Put(t.Context(), []storage.Write{{Scope: testScope, Memories: []storage.Memory{private, gone}}}); err != nil {
			t.Fatal(err)
		}
		p.stop()
		store.refuseWhere(nil)
		if store.spooledRecords(t) == 0 {
			t.Fatal("the spool is empty: the test shows nothing")
		}
		x = &handIndex{}
		p = start(t, New(DefaultConfig(), store, store, x, newRedactor(t), nil, nil))
		time.Sleep(time.Minute)
		synctest.Wait()
		if of := x.get("t1.0"); of.Text == "" || !isPrivate(&of) {
			t.Errorf("the index has %q with %q, want it private", of.Text, of.Tags)
		}
		if x.has("t2.0") {
			t.Error("what was discarded is recalled")
		}
		if m := stored(t, store, "t1.0"); !isPrivate(&m) {
			t.Errorf("stored with %q", m.Tags)
		}
		p.stop()
	})
}

// What is made of a private passage is private, too.
func TestFactsOfPrivatePassages(t *testing.T) {
	const peanuts = "I'm allergic to peanuts."
	tag := func(t *testing.T, p running, id string) {
		t.Helper()
		p.edit(t, id, func(m *storage.Memory) error { m.Tags = append(m.Tags, storage.PrivateTag); return nil })
	}
	want := func(t *testing.T, store *faulty, x *handIndex, private bool) {
		t.Helper()
		m := stored(t, store, factWith(t, store, "peanuts"))
		if of := x.get(m.ID); isPrivate(&m) != private || isPrivate(&of) != private {
			t.Errorf("the fact has %q, in the index %q, want private %t", m.Tags, of.Tags, private)
		}
	}
	t.Run("tagged before its audit", func(t *testing.T) {
		byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
			p.settle(t, userTurn("t0", "I live in Porto.")) // so that its facts are in memory
			mustEnqueue(t, p.Pipeline, userTurn("t1", peanuts))
			mustFlush(t, p.Pipeline)
			tag(t, p, "t1.0")
			p.settle(t)
			want(t, store, x, true)
			if m := stored(t, store, factWith(t, store, "Porto")); isPrivate(&m) {
				t.Error("that of another passage is private")
			}
		})
	})
	t.Run("open", func(t *testing.T) {
		byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
			p.settle(t, userTurn("t1", peanuts))
			want(t, store, x, false)
		})
	})
	t.Run("its turn anew", func(t *testing.T) {
		byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
			p.settle(t, userTurn("t1", "I like the guests of the dinner."))
			tag(t, p, "t1.0")
			p.settle(t, userTurn("t1", peanuts))
			want(t, store, x, true)
		})
	})
	t.Run("after a crash", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, x := newFaulty(), &handIndex{}
			p := start(t, New(DefaultConfig(), store, store, x, newRedactor(t), nil, nil))
			mustEnqueue(t, p.Pipeline, userTurn("t1", peanuts))
			mustFlush(t, p.Pipeline)
			tag(t, p, "t1.0")
			store.refuseWhere(func(m string) bool { return strings.HasPrefix(m, "Put") || m == "Scan" }) // it dies before the audit
			p.stop()
			store.refuseWhere(nil)
			p = start(t, New(DefaultConfig(), store, store, x, newRedactor(t), nil, nil))
			time.Sleep(time.Hour)
			synctest.Wait()
			want(t, store, x, true)
			p.stop()
		})
	})
	// A fact that survives its conversation because it was said elsewhere, too.
	for name, private := range map[string]func(t *testing.T, p running, store *faulty){
		"the fact was private":           func(t *testing.T, p running, store *faulty) { tag(t, p, factWith(t, store, "peanuts")) },
		"the passage elsewhere is so":    func(t *testing.T, p running, _ *faulty) { tag(t, p, "t2.0") },
		"neither":                        nil,
		"the passage that goes alone is": func(t *testing.T, p running, _ *faulty) { tag(t, p, "t1.0") },
	} {
		t.Run("said elsewhere, "+name, func(t *testing.T) {
			byHand(t, func(t *testing.T, p running, store *faulty, x *handIndex) {
				elsewhere := userTurn("t2", peanuts)
				elsewhere.Conversation = "c2"
				p.settle(t, userTurn("t1", peanuts))
				time.Sleep(time.Minute)
				p.settle(t, elsewhere)
				if private != nil {
					private(t, p, store)
				}
				if _, err := p.ForgetConversation(t.Context(), testScope, "c1"); err != nil && !errors.Is(err, storage.ErrNotFound) {
					t.Fatal(err)
				}
				want(t, store, x, private != nil && name != "the passage that goes alone is")
			})
		})
	}
}
