package recall

import (
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// A passage that is marked as outdated while its index is loaded keeps the mark
// and is not duplicated.
func TestPassagesAreMarkedLate(t *testing.T) {
	ms := texts("I live in Berlin, near the harbour.", "The harbour of Porto is nice.")
	e, _ := newEngine(t, patient(), ms)
	ask := Request{Scope: alice, Newest: "Who lives near the Berlin harbour?", NoGate: true, Lines: true}
	for _, marked := range []bool{false, true} {
		if marked {
			again := ms[0]
			again.Tags = []string{storage.OutdatedTag}
			e.Add(alice, "", []storage.Memory{again})
		}
		res, err := e.Recall(t.Context(), ask)
		if err != nil || len(res.Memories) != 2 {
			t.Fatalf("got %+v, %v", res, err)
		}
		for _, m := range res.Memories {
			if got := slices.Contains(m.Memory.Tags, storage.OutdatedTag); got != (marked && m.Memory.ID == ms[0].ID) {
				t.Errorf("marked %v: %s has %v", marked, m.Memory.Text, m.Memory.Tags)
			}
		}
	}
}

// The mark of an outdated line counts in the token budget.
func TestMarksCountInTheBudget(t *testing.T) {
	m := said(1, "x")
	plain := overhead(&m)
	m.Tags = []string{storage.ProjectTag + "p", storage.OutdatedTag}
	if got, want := overhead(&m)-plain, len("(in part outdated) "); got != want {
		t.Errorf("got %d bytes more, want %d", got, want)
	}
}
