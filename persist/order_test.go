package persist

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// turnAfter is userTurn in a conversation of its own, some time after the start
// of the test.
func turnAfter(start time.Time, after time.Duration, id, text string) Turn {
	t := userTurn(id, text)
	t.Conversation = "c" + id
	for i := range t.Messages {
		t.Messages[i].Time = storage.TimeOf(start.Add(after))
	}
	return t
}

// TestLastStatementHolds audits statements in another order than they were made
// in. The one said last holds, whenever it was audited, and a repeated
// statement counts as said when it was repeated.
func TestLastStatementHolds(t *testing.T) {
	porto, lisbon := "I live in Porto.", "I live in Lisbon."
	type saying struct {
		hours int
		text  string
	}
	for name, c := range map[string]struct {
		withPipeline []saying
		want         string
		older        []string // superseded, by when they were said
	}{
		"in order":                  {[]saying{{1, porto}, {2, lisbon}}, lisbon, []string{porto}},
		"late":                      {[]saying{{2, lisbon}, {1, porto}}, lisbon, []string{porto}},
		"late, confirmed meanwhile": {[]saying{{1, porto}, {3, porto}, {2, lisbon}}, porto, []string{lisbon}},
		"late confirmation":         {[]saying{{1, porto}, {3, lisbon}, {2, porto}}, lisbon, []string{porto, porto}},
		"later than confirmed":      {[]saying{{1, porto}, {3, porto}, {4, lisbon}}, lisbon, []string{porto}},
		"confirmed before":          {[]saying{{3, porto}, {1, porto}, {2, lisbon}}, porto, []string{lisbon}},
		"back and forth":            {[]saying{{1, porto}, {2, lisbon}, {3, porto}}, porto, []string{porto, lisbon}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, restart := range []bool{false, true} { // what is held of facts is read anew then
				synctest.Test(t, func(t *testing.T) {
					store := newFaulty()
					begun := time.Now()
					p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
					for i, s := range c.withPipeline {
						time.Sleep(10 * time.Hour)
						p.settle(t, turnAfter(begun, time.Duration(s.hours)*time.Hour, string(rune('a'+i)), s.text))
						if restart {
							p.stop()
							p = start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
						}
					}
					facts := factsOf(t, store, testScope)
					if diff := cmp.Diff([]string{`"` + c.want + `"`}, current(facts)); diff != "" {
						t.Errorf("holds, restart %v (-want +got):\n%s", restart, diff)
					}
					slices.SortFunc(facts, func(a, b storage.Memory) int { return int(a.EventTime - b.EventTime) })
					var older []string
					for _, m := range facts {
						if m.SupersededBy == "" {
							continue
						}
						quote, _, _ := extract.Quotation(m.Text)
						older = append(older, quote)
						if m.ValidTo <= m.ValidFrom {
							t.Errorf("%q holds from %d to %d", quote, m.ValidFrom, m.ValidTo)
						}
					}
					if diff := cmp.Diff(c.older, older); diff != "" {
						t.Errorf("history, restart %v (-want +got):\n%s", restart, diff)
					}
					p.stop()
				})
			}
		})
	}
}

// TestCorrectionInOneMessage has two values in one message. The second holds,
// whichever has the higher score.
func TestCorrectionInOneMessage(t *testing.T) {
	for _, text := range []string{
		"My deadline is Friday at 5 in Building 7. No, my deadline is Monday.",
		"My deadline is Friday. No, my deadline is Monday at 5 in Building 7.",
	} {
		withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
			p.settle(t, userTurn("t1", text))
			got := current(factsOf(t, store, testScope))
			if len(got) != 1 || !strings.Contains(got[0], "Monday") {
				t.Errorf("%q: %v", text, got)
			}
		})
	}
}

// TestSameWordsAnotherDay checks that "on Friday" said in May is another Friday
// than in March.
func TestSameWordsAnotherDay(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, userTurn("t1", "My dentist appointment is on Friday."))
		time.Sleep(time.Hour)
		p.settle(t, userTurn("t2", "My dentist appointment is on Friday."))
		first := current(factsOf(t, store, testScope))
		if len(first) != 1 || p.Metrics().Memories.Reinforced != 1 {
			t.Errorf("in one week: %v, %d reinforced", first, p.Metrics().Memories.Reinforced)
		}
		time.Sleep(60 * 24 * time.Hour)
		p.settle(t, userTurn("t3", "My dentist appointment is on Friday."))
		if got := current(factsOf(t, store, testScope)); len(got) != 1 || got[0] == first[0] {
			t.Errorf("two months later: %v, want another date than %v", got, first)
		}
	})
}

// TestOneSubjectInTwoWordings checks that a name, an age and a weight have one
// value in any wording.
func TestOneSubjectInTwoWordings(t *testing.T) {
	for _, c := range [][2]string{
		{"My name is Zoe.", "Please call me Ana."}, {"My age is 33.", "I am 34 years old."}, {"My weight is 80 kilos.", "I weigh 79 kilos."},
	} {
		a := extract.ParseStatement(c[0]).Subject
		if b := extract.ParseStatement(c[1]).Subject; a != b || a == "" {
			t.Errorf("%q is about %q, %q about %q", c[0], a, c[1], b)
		}
	}
}

// TestCorrections checks that a statement that is taken back is superseded even
// without a subject, and if the correction has the higher score and is merged
// first. Other conversations are not affected.
func TestCorrections(t *testing.T) {
	for _, second := range []string{"No, I meant we deploy the shop from release branches.", "Sorry, we deploy the shop from release branches on Friday at 5 in Berlin."} {
		withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
			other := userTurn("t0", "We deploy the wiki from a laptop.")
			other.Conversation = "c0"
			p.settle(t, other, userTurn("t1", "We deploy the shop from the main branch."), userTurn("t2", second))
			var older []string
			for _, m := range factsOf(t, store, testScope) {
				if m.SupersededBy != "" {
					older = append(older, m.Text)
				}
			}
			if want := []string{`"We deploy the shop from the main branch."`}; !slices.Equal(older, want) || len(current(factsOf(t, store, testScope))) != 2 {
				t.Errorf("%q: superseded %v, current %v", second, older, current(factsOf(t, store, testScope)))
			}
		})
	}
}
