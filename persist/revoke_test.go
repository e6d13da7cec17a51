package persist

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist/distill"
	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// turnAt is userTurn with a time and another answer.
func turnAt(id, text, answer string, at time.Time) Turn {
	turn := turnOf(testScope, id, text, answer)
	for i := range turn.Messages {
		turn.Messages[i].Time = storage.TimeOf(at) + storage.Time(i)
	}
	return turn
}

// TestRevokedLinkOfAChain replaces the second of three statements on one
// subject: the first must not hold again next to the third.
func TestRevokedLinkOfAChain(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		now := time.Now()
		p.settle(t, turnAt("t1", "I live in Berlin.", "Nice. Dinner is at eight with the guests.", now))
		p.settle(t, turnAt("t2", "I live in Paris.", "Nice. Dinner is at eight with the guests.", now.Add(time.Minute)))
		p.settle(t, turnAt("t3", "I live in Rome.", "Nice. Dinner is at eight with the guests.", now.Add(2*time.Minute)))
		if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, []string{`"I live in Rome."`}) {
			t.Fatalf("before: %v", got)
		}
		p.settle(t, turnAt("t2", "What time is it there?", "Nice. Dinner is at nine.", now.Add(time.Minute)))
		if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, []string{`"I live in Rome."`}) {
			t.Errorf("current facts: %v", got)
		}
		// The first is superseded by the third now, and holds again without it.
		p.settle(t, turnAt("t3", "What time is it here?", "Nice. Dinner is at nine.", now.Add(2*time.Minute)))
		if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, []string{`"I live in Berlin."`}) {
			t.Errorf("current facts at last: %v", got)
		}
	})
}

// TestReplacedInOneRound replaces a turn whose facts are not committed yet.
func TestReplacedInOneRound(t *testing.T) {
	p := New(DefaultConfig(), newFaulty(), newFaulty(), nil, newRedactor(t), nil, nil)
	p.cfg.Audit.WindowMessages = 6
	r := p.auditor.newRound(t.Context(), t.Context())
	hear := func(turn Turn, replaced bool) {
		h := newAuditTurn(&turn, p.cfg.Audit.WindowMessages)
		h.replaced, h.reworded = replaced, replaced
		r.take(&h)
		r.audit(p.auditor.conversations[h.conversationKey], nil)
	}
	now := time.Now()
	hear(turnAt("t1", "I live in Paris.", "Nice. Dinner is at eight with the guests.", now), false)
	hear(turnAt("t1", "I live in Rome.", "Nice. Dinner is at nine with the guests.", now), true)
	hear(turnAt("t1", "What time is it there?", "Nice. Dinner is at ten with the guests.", now), true)
	r.commit()
	if got := current(factsOf(t, p.store, testScope)); got != nil {
		t.Errorf("facts of a replaced turn: %v", got)
	}
}

// TestRegeneratedReplyKeepsDistilledFacts replaces only the reply; the user's
// words still hold.
func TestRegeneratedReplyKeepsDistilledFacts(t *testing.T) {
	for name, again := range map[string]error{"proposed again": nil, "no model": distill.ErrBusy} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				pipe := New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil)
				asked := 0
				pipe.SetDistiller(proposer(func([]extract.Message) ([]extract.Proposal, error) {
					if asked++; asked > 1 && again != nil {
						return nil, again
					}
					return []extract.Proposal{{Message: 0, Quote: "nuts are deadly for me", Statement: "The user has a severe allergy to nuts.", Kind: "fact"}}, nil
				}))
				p := start(t, pipe)
				p.settle(t, userTurn("t1", "Well, nuts are deadly for me."))
				p.settle(t, turnOf(testScope, "t1", "Well, nuts are deadly for me.", "I'll keep to dishes without any, for the dinner and the guests."))
				if got := current(factsOf(t, store, testScope)); !cmp.Equal(got, []string{"The user has a severe allergy to nuts."}) {
					t.Errorf("facts: %v", got)
				}
				p.stop()
			})
		})
	}
}

// slowDistiller answers after a while.
type slowDistiller struct {
	proposer
	after time.Duration
}

func (s slowDistiller) Distill(ctx context.Context, w []extract.Message) ([]extract.Proposal, error) {
	time.Sleep(s.after)
	return s.proposer.Distill(ctx, w)
}

// TestMessagesDuringDistillerCall checks that a model's answer is applied to
// the messages that it was shown, wherever they are by then, and that messages
// which came in meanwhile are audited later.
func TestMessagesDuringDistillerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		pipe := New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil)
		pipe.SetDistiller(slowDistiller{func(w []extract.Message) ([]extract.Proposal, error) {
			out := []extract.Proposal{}
			for i, m := range w {
				if _, animal, ok := strings.Cut(m.Text, "at home there lives a "); ok && m.User && m.New {
					out = append(out, extract.Proposal{Message: i, Quote: m.Text, Statement: "The user has a " + animal, Kind: "fact"})
				}
			}
			return out, nil
		}, 40 * time.Second})
		p := start(t, pipe)
		say := func(n int, text string) {
			mustEnqueue(t, p.Pipeline, userTurn(fmt.Sprint("t", n), text))
			mustFlush(t, p.Pipeline)
			synctest.Wait()
		}
		for n := range 5 { // ten messages of the window are seen by the time of the call that matters
			say(n, fmt.Sprintf("What about number %d?", n))
		}
		time.Sleep(10 * time.Minute)
		say(10, "Well, at home there lives a tortoise.")
		time.Sleep(3*time.Minute + 10*time.Second) // the model is being asked
		say(11, "Well, at home there lives a parrot.")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want := []string{"The user has a parrot.", "The user has a tortoise."}
		if diff := cmp.Diff(want, current(factsOf(t, store, testScope))); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
		p.stop()
	})
}
