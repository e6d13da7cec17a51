package api

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// What is retrieved for another program passes the gate, and private memories
// stay here: no policy knows where they would go.
func TestRetrieve(t *testing.T) {
	s, _ := newCurated(t, nil)
	who := Target{User: "ada"}
	for _, d := range []Draft{
		{Text: "My boat Marbella is in the old harbour.", Tags: []string{storage.PrivateTag}}, {Text: "My boat Marbella is painted blue."}, {Text: "I play the cello."},
	} {
		if _, err := s.Add(t.Context(), curator, who, d, "api"); err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.Retrieve(t.Context(), curator, who, Retrieval{Query: "Where is the boat Marbella?", TopK: 10})
	if err != nil || len(found) != 1 || found[0].Memory.Text != "My boat Marbella is painted blue." {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err = s.Retrieve(t.Context(), curator, Target{User: "ben"}, Retrieval{Query: "boat"}); err != nil || len(found) != 0 {
		t.Errorf("of another user: %+v, %v", found, err)
	}
	for field, q := range map[string]Retrieval{
		"query": {Query: " "}, "topK": {Query: "x", TopK: MaxTopK + 1}, "scope[0]": {Query: "x", Scopes: []string{"everything"}},
		"conversation": {Query: "x", Conversation: strings.Repeat("c", 513)},
	} {
		_, err := s.Retrieve(t.Context(), curator, who, q)
		if e, ok := errors.AsType[*FieldError](err); !ok || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Turns that are handed in twice are there once.
func TestAddTurns(t *testing.T) {
	s, _ := newCurated(t, nil)
	who, now := Target{User: "ada"}, storage.TimeOf(s.Now())
	said := []persist.Message{
		{Role: storage.RoleUser, Text: "I sail.", Time: now}, {Role: storage.RoleAssistant, Text: "Where to?", Time: now + 1},
		{Role: storage.RoleUser, Text: "To Faro.", Time: now + 2},
	}
	for range 2 {
		if n, err := s.AddTurns(t.Context(), curator, who, "c1", said, "api"); err != nil || n != 2 {
			t.Fatalf("%d turns, %v", n, err)
		}
		if err := s.FlushTurns(t.Context(), curator, who); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.List(t.Context(), curator, who, Filter{Conversation: "c1", Oldest: true}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range page.Memories {
		got = append(got, m.Text)
	}
	if want := []string{"I sail.", "Where to?", "To Faro."}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	bad := slices.Clone(said)
	bad[1].Role = "system"
	if _, err := s.AddTurns(t.Context(), curator, who, "c1", bad, "api"); err == nil || !strings.Contains(err.Error(), "messages[1].role") {
		t.Errorf("a wrong role: %v", err)
	}
	if _, err := s.AddTurns(t.Context(), curator, who, "", said, "api"); err == nil {
		t.Error("a conversation without a name was taken")
	}
}

// DeleteAll deletes what a filter selects, and the undoing of one deletion brings
// back all of it.
func TestDeleteAll(t *testing.T) {
	s, _ := newCurated(t, nil)
	who := Target{User: "ada"}
	for _, d := range []Draft{{Text: "I sail.", Tags: []string{"hobby"}}, {Text: "I paint boats.", Tags: []string{"hobby"}}, {Text: "I work as a nurse."}} {
		if _, err := s.Add(t.Context(), curator, who, d, "api"); err != nil {
			t.Fatal(err)
		}
	}
	count := func(f Filter) int {
		t.Helper()
		n, err := s.Count(t.Context(), curator, who, f)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	hobbies := Filter{Tags: []string{"hobby"}}
	gone, err := s.DeleteAll(t.Context(), curator, who, hobbies, "a test")
	if err != nil || len(gone.Deleted) != 2 || gone.UndoUntil == "" {
		t.Fatalf("%+v, %v", gone, err)
	}
	if n, left := count(hobbies), count(Filter{}); n != 0 || left != 1 {
		t.Errorf("%d hobbies of %d memories are left", n, left)
	}
	if again, err := s.DeleteAll(t.Context(), curator, who, hobbies, ""); err != nil || len(again.Deleted) != 0 || again.UndoUntil != "" {
		t.Errorf("again: %+v, %v", again, err)
	}
	if back, err := s.Undo(t.Context(), curator, who, gone.Deleted[0], ""); err != nil || len(back) != 2 {
		t.Errorf("brought back %+v, %v", back, err)
	}
	if n := count(hobbies); n != 2 {
		t.Errorf("%d hobbies", n)
	}
	if _, err := s.DeleteAll(t.Context(), curator, who, hobbies, strings.Repeat("w", MaxReason+1)); err == nil {
		t.Error("a reason that is too long was taken")
	}
}
