package api

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist"
)

// dialogue returns messages of the user and the assistant in turn.
func dialogue(texts ...string) (out []Message) {
	for i, text := range texts {
		out = append(out, Message{Role: [...]string{"user", "assistant"}[i%2], Content: text})
	}
	return out
}

func TestReportConversation(t *testing.T) {
	s, _ := newCurated(t, nil)
	who := Target{User: "ann"}
	report := func(conversation string, messages ...Message) []string {
		t.Helper()
		turns, err := s.ReportConversation(t.Context(), curator, who, conversation, messages)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Pipeline.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return turns
	}
	said := dialogue("The hall is cold.", "I see.", "The hall is cold.", "I see.", "The lamp flickers.", "Odd.")
	first := report("c1", said...)
	if len(first) != 3 || len(slices.Compact(slices.Sorted(slices.Values(first)))) != 3 {
		t.Errorf("turns: %v", first)
	}
	count := func() int {
		t.Helper()
		n, err := s.Count(t.Context(), curator, who, Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 6 {
		t.Errorf("%d passages, want 6", n)
	}
	time.Sleep(2 * time.Millisecond)
	if again := report("c1", said...); !slices.Equal(again, first) || count() != 6 {
		t.Errorf("the same again: %v, %d passages", again, count())
	}
	if more := report("c1", append(said, dialogue("The door creaks.", "Oil it.")...)...); !slices.Equal(more[:3], first) || count() != 8 {
		t.Errorf("continued: %v, %d passages", more, count())
	}
	if other := report("c2", said[:2]...); other[0] == first[0] {
		t.Error("another conversation has the same turns")
	}
	unnamed := report("", said[:2]...)
	if again := report("", said[:4]...); again[0] != unnamed[0] {
		t.Error("a conversation without a name that goes on is another one")
	}
	passages, err := s.Passages(t.Context(), curator, who, unnamed[0])
	if err != nil || len(passages) != 2 || !Unnamed(passages[0].Conversation) || passages[1].Role != "assistant" || passages[0].EventTime >= passages[1].EventTime {
		t.Errorf("passages: %+v, %v", passages, err)
	}
	if passages, err := s.Passages(t.Context(), curator, Target{User: "ben"}, unnamed[0]); err != nil || len(passages) != 0 {
		t.Errorf("somebody else's: %v, %v", passages, err)
	}
	// What was said long ago does not expire at once.
	old := Message{Role: "user", Content: "The mill burned down.", Time: "2001-09-09"}
	passages, err = s.Passages(t.Context(), curator, who, report("c3", old)[0])
	if err != nil || len(passages) != 1 || passages[0].ExpiresAt < stampNow(s) {
		t.Errorf("long ago: %+v, %v", passages, err)
	}
}

func stampNow(s *Service) string { return s.Now().UTC().Format(timeLayout) }

func TestReportConversationRefuses(t *testing.T) {
	s, store := newCurated(t, func(c *persist.Config) { c.TurnsPerSecond = 1 })
	good := dialogue("The hall is cold.", "I see.")
	for field, messages := range map[string][]Message{
		"messages":              {},
		"messages[1].role":      {good[0], {Role: "system", Content: "x"}},
		"messages[0].content":   {{Role: "user", Content: " "}},
		"messages[1].time":      {good[0], {Role: "assistant", Content: "x", Time: "yesterday"}},
		"messages[0].timestamp": {{Role: "user", Content: "x", Time: "2999-01-01"}},
	} {
		_, err := s.ReportConversation(t.Context(), curator, Target{User: "ann"}, "c", messages)
		var problem *FieldError
		if !errors.As(err, &problem) || problem.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := s.ReportConversation(t.Context(), curator, Target{User: "ann"}, strings.Repeat("c", 513), good); err == nil {
		t.Error("a conversation's id that is too long")
	}
	if _, err := s.ReportConversation(t.Context(), Principal{Tenant: "t", User: "ann"}, Target{User: "ben"}, "c", good); !errors.Is(err, ErrNotFound) {
		t.Errorf("for somebody else: %v", err)
	}
	// One call is one of the turns that a user may hand in a second, however
	// many turns it has.
	many := dialogue("One.", "a", "Two.", "b", "Three.", "c")
	if turns, err := s.ReportConversation(t.Context(), curator, Target{User: "ann"}, "c", many); err != nil || len(turns) != 3 {
		t.Errorf("many turns: %v, %v", turns, err)
	}
	if _, err := s.ReportConversation(t.Context(), curator, Target{User: "ann"}, "c", good); !errors.Is(err, persist.ErrRateLimited) {
		t.Errorf("the next call: %v", err)
	}
	store.Fail(true)
	if _, err := s.Owner(curator, Target{User: "ann"}); err != nil {
		t.Errorf("whose it is needs no store: %v", err)
	}
	if _, err := s.Passages(t.Context(), curator, Target{User: "ann"}, "t"); err == nil {
		t.Error("passages without a store")
	}
	store.Fail(false)
}

func TestOwner(t *testing.T) {
	s, _ := newCurated(t, nil)
	for _, test := range []struct {
		p        Principal
		t, owner Target
		fails    bool
	}{
		{curator, Target{User: "ann"}, Target{"local", "default", "default", "ann"}, false},
		{curator, Target{User: "ben smith", App: "a b"}, Target{"local", `"a b"`, "default", `"ben smith"`}, false},
		{curator, Target{}, Target{"local", "default", "default", "(key holder)"}, false},
		{Principal{Tenant: "t", User: "ann"}, Target{}, Target{"t", "default", "default", "ann"}, false},
		{Principal{Tenant: "t", User: "ann"}, Target{User: "ben"}, Target{}, true},
		{Principal{}, Target{User: "ann"}, Target{}, true},
	} {
		owner, err := s.Owner(test.p, test.t)
		if owner != test.owner || (err != nil) != test.fails {
			t.Errorf("%+v of %+v: %+v, %v", test.t, test.p, owner, err)
		}
		if !test.fails {
			if again, err := s.Owner(test.p, owner); again != owner || err != nil {
				t.Errorf("%+v is not its own owner: %+v, %v", owner, again, err)
			}
		}
	}
}
